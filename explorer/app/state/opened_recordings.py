"""Recordings that visitors opened from files of theirs: each visit's own, as long as it lasts, and
all together within the memory of this server."""

from __future__ import annotations

from pathlib import Path
from weakref import WeakSet

from streamlit.runtime.scriptrunner import get_script_run_ctx

from explorer.app.state import event_log, models, scheduling
from explorer.app.state.settings import settings
from explorer.app.state.visit import visit
from models.inputs import recorded_model
from models.inputs.recorded_model import RecordedModel

_of_all: WeakSet[RecordedModel] = WeakSet()


def open_file(data: bytes, of_server: bool = False) -> RecordedModel:
    """The recording of a file, as a model of this visit. It may take half of the room that others
    leave, so that some is left for who comes next; one that the server was started with
    (`of_server`) all of it. The visit's earlier ones are let go where all do not fit. Raises
    ValueError, one sentence, for what is no recording and for one for which there is no room."""
    own: dict[str, RecordedModel] = visit.opened_recordings
    of_others = sum(recorded_model.n_bytes(each) for each in _of_all if each.name not in own)
    room = settings().cache_bytes
    if not of_server:
        room = max(0, room - of_others) // 2
    opened = scheduling.run_exclusively(lambda: recorded_model.opened(data, room))
    own.pop(opened.name, None)
    own[opened.name] = opened
    _of_all.add(opened)
    while sum(map(recorded_model.n_bytes, own.values())) > room and len(own) > 1:
        gone = next(iter(own))
        del own[gone]
        models.forget_opened((gone,))
    visit.opened_recordings = own
    models.remember_opened(opened.name)
    return opened


def open_first() -> None:
    """Open, at the start of a visit, the recording of the file that this server was started with; a
    bare address then means it. One that cannot be opened is logged."""
    if visit.written is not None or not settings().recording:
        return
    try:
        opened = open_file(Path(settings().recording).read_bytes(), of_server=True)
    except (OSError, ValueError) as error:
        event_log.log_exception(error)
    else:
        visit.first_recording = opened.recorded.text, opened.name


def drop_uploads() -> None:
    """Let go of the files that this visit has sent; what was read of them is elsewhere."""
    if (run := get_script_run_ctx(suppress_warning=True)) is not None:
        run.uploaded_file_mgr.remove_session_files(run.session_id)
