"""Ordinary sentences of three languages, of 3 to 60 words, that every step, claim and question must
be true of."""

from __future__ import annotations

SENTENCES = (
    # Of lecture notes.
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "Ram pushed Hari because he was angry.",
    "Ram pushed Hari",
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent",
    "I love to eat pizza.",
    "The cat sat on the mat.",
    "She bought an apple and ate it at once.",
    "Apple presented its new devices in September.",
    # Short ones.
    "Dogs bark loudly.",
    "It rained all night.",
    "Nobody knows why.",
    "Close the door, please.",
    "Water boils at 100 degrees.",
    "Where did you put my keys?",
    "My sister paints houses.",
    "No, no, no!",
    # Of middle length.
    "The nurse told the doctor that she would be late for the meeting.",
    "When the king died, the people mourned him for a year.",
    "The trophy does not fit into the suitcase because it is too large.",
    "If you heat the ice, it will melt and turn into water.",
    "Yesterday we met a farmer who had lost three of his sheep.",
    "The boys played in the garden until their mother called them.",
    "Peter gave Mary a book, and she thanked him for it.",
    "The old man sat by the river and watched the boats go by.",
    "A small child can ask more questions than a wise man can answer.",
    "She put the cup on the table, but it fell and broke.",
    "The teacher asked the pupils to open their books at page 12.",
    "Paris is the capital of France, and Rome is the capital of Italy.",
    "The train to London leaves at seven, so we must hurry.",
    "They sold the house that their grandfather had built.",
    "Although he was ill, the captain stayed on the ship.",
    "The red car is faster than the blue one, but it costs more.",
    "Birds fly south in winter because food becomes scarce in the north.",
    "Anna and Tom wanted to swim, but the lake was frozen.",
    "Every morning the baker gets up at three and bakes fresh bread.",
    "The dog that chased the cat was barking at the moon.",
    "He opened the letter, read it twice and threw it into the fire.",
    "The committee rejected the proposal because it was too expensive.",
    "The sun had set, and the first stars were shining over the hills.",
    # Long ones.
    "The museum, which was built in 1890 by a rich merchant who had no children, was closed last "
    "year because the roof had begun to leak and nobody was willing to pay for a new one.",
    "When the engineers looked at the bridge after the storm, they found that two of the cables "
    "had been damaged, that the road had sunk by a few inches, and that the traffic would have to "
    "be sent through the next town until the spring, which made the people who live there rather "
    "unhappy with the council.",
    "My grandmother used to say that a garden is like a friendship: if you leave it alone for a "
    "season, it will not die, but you will need twice as long to find your way back into it.",
    "The company said on Monday that it would move four hundred workers from its old plant near "
    "the river to a new one outside the city, where the rents are lower and the roads are wider, "
    "and that none of them would lose their job before the end of next year.",
    "In the beginning the two brothers shared everything, the house, the horses and the fields, "
    "but when the elder one married, his wife wanted a house of her own, and so they drew a line "
    "through the middle of the farm.",
    # German.
    "Der Hund schläft.",
    "Das Kind weinte, weil es müde war.",
    "Die Katze sitzt auf der Matte und wartet auf die Maus.",
    "Als der Zug endlich kam, war der Bahnhof schon leer.",
    "Meine Schwester hat gestern ein Buch gekauft, aber sie hat es noch nicht gelesen.",
    "Wenn es morgen regnet, bleiben wir zu Hause und spielen Karten.",
    "Der alte Mann, der jeden Tag mit seinem Hund durch den Park ging, ist im letzten Winter in "
    "eine kleine Stadt am Meer gezogen, weil seine Tochter dort wohnt.",
    # French.
    "Il fait froid.",
    "Le chat dort sur la chaise.",
    "Marie a perdu ses clés, mais elle les a retrouvées.",
    "Les enfants jouent dans le jardin parce qu'il fait beau.",
    "Hier, nous avons mangé une soupe que mon père avait faite.",
    "Le train pour Lyon part à huit heures, et il est déjà sept heures et demie.",
    "La vieille maison au bord de la rivière, où ma tante a vécu pendant trente ans, a été vendue "
    "à un peintre qui veut en faire un atelier.",
    "Quand il pleut, elle reste à la fenêtre et regarde les passants.",
)
