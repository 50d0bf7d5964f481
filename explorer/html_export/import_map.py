"""The components' code for a file that stands alone: the modules that a view needs, each an address
that holds the module itself."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable

from explorer.components import bundle

HOST = "standalone_host"
# Modules import each other by names relative to their folder, which a data address has not.
IMPORT = re.compile(r'^((?:import|export)\b[^"\';]*?|\} from\s*)"\./([\w.]+)"', re.MULTILINE)


def import_map(components: Iterable[str]) -> dict[str, dict[str, str]]:
    """An import map with the host, the components and whatever they import. Raises ValueError for a
    component that does not exist."""
    made: dict[str, str] = {}
    left = [f"{name}.js" for name in (HOST, *components)]
    while left:
        name = left.pop()
        if name in made:
            continue
        if name not in bundle.modules():
            raise ValueError(f"there is no component {name.removesuffix('.js')!r}")
        code = bundle.modules()[name].decode("utf-8")
        left += [match[2] for match in IMPORT.finditer(code)]
        code = IMPORT.sub(r'\1"headlight/\2"', code)
        made[name] = (
            "data:text/javascript;charset=utf-8;base64," + b64encode(code.encode()).decode()
        )
    return {"imports": {f"headlight/{name}": made[name] for name in sorted(made)}}
