"""Which of the user's own headers a source includes."""

from __future__ import annotations

from pathlib import Path

from gemmsim.compile.includes import include_folders, user_headers


def test_folders_of_options() -> None:
    options = ("-DX", "-I/one", "-I", "two", "--include-path=/three", "--include-path", "/four", "-isystem", "/five")
    assert include_folders(options) == tuple(map(Path, ("/one", "two", "/three", "/four", "/five")))


def test_headers_are_found_as_the_compiler_finds_them(tmp_path: Path) -> None:
    for name, text in {
        "src/my.cu": "",
        "src/near.h": '#include "deep/deeper.h"\n#include <vector>',
        "src/deep/deeper.h": '# include "../near.h"\n  #  include "side.h"',
        "src/deep/side.h": "",
        "src/angled.h": "",
        "lib/lib/all.h": '#include <lib/some.h>\n#include "some.h"',
        "lib/lib/some.h": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    text = '#include "near.h"\n#include <lib/all.h>\n#include <angled.h>\n#include "absent.h"\n'
    main, lib = tmp_path / "src" / "my.cu", tmp_path / "lib"
    found = {str(one.path.relative_to(tmp_path)): one.names for one in user_headers(text, main, (lib,))}
    assert found == {
        "src/near.h": ("../near.h", "near.h"),
        "src/deep/deeper.h": ("deep/deeper.h",),
        "src/deep/side.h": ("side.h",),
        "lib/lib/all.h": ("lib/all.h",),
        "lib/lib/some.h": ("lib/some.h", "some.h"),
    }
