"""Hand-made sentences that models of real text are measured on, written for this project and kept
out of all training.

PRONOUNS: a pronoun and two nouns of which one fits it by gender or number. PAIRS: words of which
one belongs to the other, a determiner to its noun and a verb to its subject, not always side by
side. TO_TRANSLATE: English of 8 to 25 words with rarer words and verbs of two objects.
"""

from __future__ import annotations

# "sentence | pronoun | the noun that fits | the other one"; each word's first occurrence is meant.
_PRONOUNS = """
The widow waved to the postman because he had brought good news. | he | postman | widow
My sister lent the carpenter a ladder, but he never gave it back. | he | carpenter | sister
The actress kissed the old farmer and he turned quite red. | he | farmer | actress
When the nurse had gone, the boy cried until he was hoarse. | he | boy | nurse
The girl waited for her grandfather, although he was always slow. | he | grandfather | girl
The queen sent for the wizard since he knew every herb. | he | wizard | queen
The mother scolded her son because he had torn his best coat. | he | son | mother
The king married a poor girl, and on that day he gave away his gold. | he | king | girl
Our uncle wrote to the duchess that he could not come. | he | uncle | duchess
The bride smiled at the groom while he looked for the ring. | he | groom | bride
The policeman stopped the old lady, but he only wanted to help. | he | policeman | lady
The princess pitied the beggar because he had no shoes. | he | beggar | princess
As soon as the girls had left, the gardener said that he felt tired. | he | gardener | girls
The soldiers obeyed the captain because he was never afraid. | he | captain | soldiers
The children loved the old clown although he seldom spoke. | he | clown | children
The baker shouted at the pigeons when he saw the crumbs. | he | baker | pigeons
The hunter followed the wolves until he lost his way. | he | hunter | wolves
The tourists asked the waiter whether he spoke English. | he | waiter | tourists
The boy fed the hens before he went to school. | he | boy | hens
The emperor feared his enemies because he had few friends. | he | emperor | enemies
The butcher greeted the widow because she came every morning. | she | widow | butcher
My brother teased the cook until she threw a spoon at him. | she | cook | brother
The boy helped the old woman since she could not see well. | she | woman | boy
When the duke arrived, the maid said that she was sorry. | she | maid | duke
The prince danced with the girl, but she left at midnight. | she | girl | prince
The father carried his daughter because she had hurt her knee. | she | daughter | father
The king listened to the queen, for she was often right. | she | queen | king
The sailor sold the lady a parrot, and she taught it to sing. | she | lady | sailor
The doctor's wife told the boy that she had lost her purse. | she | wife | boy
The grandfather laughed at his niece when she put on his hat. | she | niece | grandfather
The tailor praised the actress although she had not paid him. | she | actress | tailor
The monk showed the princess a door, and she opened it at once. | she | princess | monk
The miller's daughter feared the king because she could not spin gold. | she | daughter | king
The twins hid from their aunt until she promised them cake. | she | aunt | twins
The pupils brought the lady flowers because she was leaving. | she | lady | pupils
The bees did not sting the girl, though she stood very near. | she | girl | bees
The sheep ran to the old woman when she called. | she | woman | sheep
The mother of the boys said that she needed some rest. | she | mother | boys
The reporters followed the singer because she had won a prize. | she | singer | reporters
My grandmother baked bread for the workmen before she went to bed. | she | grandmother | workmen
The teacher punished the pupils because they had broken a window. | they | pupils | teacher
The farmer sold his horses since they were too old to work. | they | horses | farmer
The girl threw bread to the ducks and they swam towards her. | they | ducks | girl
The boy picked the cherries before they were ripe. | they | cherries | boy
The queen thanked the soldiers because they had saved the town. | they | soldiers | queen
The shepherd counted his lambs while they crossed the stream. | they | lambs | shepherd
The captain warned the sailors that they would meet a storm. | they | sailors | captain
The cat watched the mice until they came out of the hole. | they | mice | cat
My aunt washed the plates although they were clean. | they | plates | aunt
The judge did not believe the thieves when they said nothing. | they | thieves | judge
The gardener watered the roses because they looked dry. | they | roses | gardener
The old man fed the pigeons whenever they gathered on his roof. | they | pigeons | man
The students liked the poet, so they asked him for one more story. | they | students | poet
The villagers trusted the priest, for they had known him for years. | they | villagers | priest
The hunters lost the bear because they made too much noise. | they | hunters | bear
The nurses lifted the king until they could turn his pillow. | they | nurses | king
The parents looked for the child until they heard a small voice. | they | parents | child
The workers carried the piano up the stairs and then they rested. | they | workers | piano
The monkeys stole the man's hat and they would not give it back. | they | monkeys | man
The neighbours called the doctor as soon as they smelled smoke. | they | neighbours | doctor
"""

# "sentence | determiner=noun ... | verb=subject ...": a line that begins with | goes on.
_PAIRS = """
The tall farmer with a wooden leg sings in our church. | The=farmer a=leg our=church | sings=farmer
A small green frog jumped over the flat stone. | A=frog the=stone | jumped=frog
My youngest cousin paints the old bridges every summer.
| My=cousin the=bridges every=summer | paints=cousin
The letters on this dusty shelf belong to her uncle.
| The=letters this=shelf her=uncle | belong=letters
Yesterday a strange noise woke our two neighbours. | a=noise our=neighbours | woke=noise
The boats near that long wooden pier sank during the storm.
| The=boats that=pier the=storm | sank=boats
His clever little sister always wins these silly games. | His=sister these=games | wins=sister
An empty glass stood beside the blue lamp. | An=glass the=lamp | stood=glass
The birds that live in our roof sing before the first light.
| The=birds our=roof the=light | sing=birds
Their old black horse never drinks the muddy water. | Their=horse the=water | drinks=horse
In the evening the tired workers of this mine drink some sweet tea.
| this=mine some=tea | drink=workers
The nurse who helped my poor father lives in a white cottage.
| The=nurse my=father a=cottage | helped=nurse lives=nurse
Every honest merchant knows his best customers. | Every=merchant his=customers | knows=merchant
Those three heavy boxes contain our winter clothes. | Those=boxes our=clothes | contain=boxes
The prince slowly opened a narrow golden door. | The=prince a=door | opened=prince
After lunch the boys carried their dirty plates into the kitchen.
| the=boys their=plates | carried=boys
This famous doctor wrote a long book about the human heart.
| This=doctor a=book the=heart | wrote=doctor
The snow covered the narrow path behind her little garden. | The=snow her=garden | covered=snow
A cold wind from the northern sea shook every broken window.
| A=wind the=sea every=window | shook=wind
Her two elder brothers built that tiny house. | Her=brothers that=house | built=brothers
"""

TO_TRANSLATE = (
    "My grandmother gave the hungry dog a large piece of bread.",
    "The old fisherman showed the children a strange green shell.",
    "She sent her cousin a postcard from a small island in Greece.",
    "Our neighbour lent us his ladder because ours was broken.",
    "The teacher read the pupils a story about a brave little mouse.",
    "He promised his daughter a new bicycle for her birthday.",
    "The waiter brought the tourists two bowls of hot onion soup.",
    "I wrote my uncle a long letter, but he never answered it.",
    "The farmer sold the butcher three sheep and an old cow.",
    "They offered the young nurse a better job in another hospital.",
    "The squirrel hid its nuts under the roots of a tall oak.",
    "Before the storm began, the sailors tied the boat to the pier.",
    "The carpenter who repaired our roof fell from a ladder yesterday.",
    "When the candle went out, nobody in the room dared to move.",
    "The postman who lives next door has a daughter who plays the violin.",
    "If it snows tonight, the bus will not be able to climb the hill.",
    "The baker's wife puts flour, butter and eggs in a big bowl.",
    "There was a small wooden bridge over the river behind the mill.",
    "My aunt keeps her old letters in a box under the bed.",
    "The thief ran away as soon as he heard the bell ring.",
    "We spent the whole afternoon looking for the key to the cellar.",
    "The train was so full that we had to stand until Lyon.",
    "Although he was tired, the doctor visited one more patient before dinner.",
    "The little girl was afraid of the dark, so her father left the door open.",
    "A black horse was standing alone in the middle of the field.",
    "The cook burned his hand while he was taking the bread out of the oven.",
    "The spider made its web between two branches of the apple tree.",
    "The museum is closed on Mondays, but the garden is always open.",
    "You should wear a coat and gloves because the wind is very cold.",
    "The boy who broke the window wants to pay for it himself.",
    "Please tell your sister that the meeting will start at nine o'clock.",
    "I would rather walk to the market than wait for the bus.",
    "The king asked the shepherd whether he had seen a white deer.",
    "The blue umbrella that you found in the train belongs to my mother.",
    "Some of the guests had already left when the musicians arrived.",
    "The soup tasted strange because the cook had used sugar instead of salt.",
    "The cat jumped onto the shelf and knocked over a glass vase.",
    "His father taught him how to swim when he was five years old.",
    "Every morning the old man feeds the pigeons in front of the church.",
    "The judge did not believe the witness because she kept changing her story.",
    "The tailor made my brother a grey suit that is much too big.",
    "Nobody knows why the lights in the library went out last night.",
    "The mountain was covered with snow, and the lake had turned to ice.",
    "The dentist told me not to eat anything sweet for two days.",
    "The pilot said that we would land in Brussels in ten minutes.",
    "A fox had dug a hole under the fence and stolen two hens.",
    "She opened the drawer, took out a pair of scissors and cut the rope.",
    "The students asked their professor to explain the last question again.",
    "The river is too deep and too cold for us to cross here.",
    "I have never seen such a beautiful sunset in my whole life.",
    "The tired workers drank their coffee without saying a single word.",
    "The owl slept in the barn all day and hunted mice at night.",
    "The company has decided to build a new factory near the harbour.",
    "My brother collects old coins, and my sister collects stamps and shells.",
    "The clown handed the crying child a yellow balloon and made her laugh.",
    "Wash the lettuce, cut the tomatoes and put everything in a large bowl.",
    "The ship that left this morning is carrying wheat, cotton and coal to England.",
    "The old woman wrapped the bread in a cloth and gave it to the beggar.",
    "Although the road was narrow and full of holes, the driver drove very fast.",
    (
        "The engineer showed the mayor a drawing of the bridge that they were going to build over "
        "the river."
    ),
)


def _fields(lines: str) -> list[tuple[str, ...]]:
    joined_lines = lines.strip().replace("\n|", " |")
    return [tuple(part.strip() for part in line.split("|")) for line in joined_lines.splitlines()]


PRONOUNS = tuple(_fields(_PRONOUNS))  # (sentence, pronoun, right noun, other noun)
# (sentence, ((determiner, noun), ...), ((verb, subject), ...))
Pairs = tuple[tuple[str, str], ...]


def _pairs(words: str) -> Pairs:
    """Of "a=b c=d" the words."""
    parts = (pair.partition("=") for pair in words.split())
    return tuple((one, other) for one, _, other in parts)


PAIRS: tuple[tuple[str, Pairs, Pairs], ...] = tuple(
    (text, _pairs(determiners), _pairs(verbs)) for text, determiners, verbs in _fields(_PAIRS)
)
TEXTS = (
    *(text for text, *_ in PRONOUNS),
    *(text for text, *_ in PAIRS),
    *TO_TRANSLATE,
)
