#!/usr/bin/env python3
# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""Makes what the public indexes want of a release: a recipe for ConanCenter, and a port for vcpkg.

usage: recipes.py --archive FILE --url URL --homepage URL --out DIR

The archive is the release's, with one folder in it, and URL is where it can be had. DIR gets conan-center/recipes/weir, to
be put into a clone of conan-center-index, and vcpkg/ports/weir, to be put into one of vcpkg. Both are made of what stands
elsewhere: the project's own Conan recipe, and the headers of Boost that weir's include.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[1]
# As the index has them, and its recipes ask for them: ranges of few packages are allowed there.
FIXED = {
    "boost/[>=1.88 <2]": "boost/1.88.0",
    "nlohmann_json/[>=3.10 <4]": "nlohmann_json/3.11.3",
    "sqlite3/[>=3.37 <4]": "sqlite3/[>=3.45.0 <4]",
    "libpq/[>=14 <19]": "libpq/[>=15.4 <18]",
    "cnats/[>=3.4 <4]": "cnats/3.13.0",
    "opentelemetry-cpp/[>=1.19 <2]": "opentelemetry-cpp/1.21.0",
}
# The port of vcpkg that each optional part needs.
PORTS = {"sqlite": "sqlite3", "redis": "openssl", "postgres": "libpq", "nats": "cnats", "opentelemetry": "opentelemetry-cpp"}
# A header right below boost/ is of this port.
TOP = {"version": "config"}


def version():
    text = (ROOT / "include" / "weir" / "version.hpp").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define WEIR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def boost_ports():
    found = set()
    for header in (ROOT / "include" / "weir").rglob("*.hpp"):
        found |= set(re.findall(r"#\s*include <boost/(\w+)[/.]", header.read_text(encoding="utf-8")))
    return sorted({"boost-" + TOP.get(name, name).replace("_", "-") for name in found})


def replaced(text, old, new):
    if text.count(old) != 1:
        raise SystemExit(f"recipes.py: conanfile.py has this {text.count(old)} times, and not once: {old}")
    return text.replace(old, new)


def conan_center(out, archive, url, homepage):
    text = (ROOT / "conanfile.py").read_text(encoding="utf-8")
    for ranged, fixed in FIXED.items():
        text = replaced(text, ranged, fixed)
    text = replaced(text, '    license = "BSL-1.0"\n', '    license = "BSL-1.0"\n'
                    f'    url = "https://github.com/conan-io/conan-center-index"\n    homepage = "{homepage}"\n')
    text = re.sub(r"    exports = .*\n    exports_sources = .*\n    test_package_folder = .*\n", "", text)
    begin, end = text.index("    def set_version(self):"), text.index("    def configure(self):")
    text = text[:begin] + '''    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

''' + text[end:]
    text = replaced(text, "import copy, load\n", "import copy, get\n")
    text = replaced(text, "        cmake_layout(self)\n", '        cmake_layout(self, src_folder="src")\n')
    text = replaced(text, "import os\nimport re\n", "import os\n")
    everything = out / "all"
    everything.mkdir(parents=True)
    (everything / "conanfile.py").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (everything / "conandata.yml").write_text(
        f'sources:\n  "{version()}":\n    url: "{url}"\n    sha256: "{digest}"\n', encoding="utf-8")
    (out / "config.yml").write_text(f'versions:\n  "{version()}":\n    folder: all\n', encoding="utf-8")
    test = everything / "test_package"
    test.mkdir()
    for file in (ROOT / "test" / "package").iterdir():
        if file.suffix == ".cpp" or file.name in ("conanfile.py", "CMakeLists.txt"):
            shutil.copy(file, test)


def vcpkg(out, archive, url, homepage):
    out.mkdir(parents=True)
    project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (out / "vcpkg.json").write_text(json.dumps({
        "name": "weir",
        "version": version(),
        "description": re.search(r'DESCRIPTION "(.*)"', project)[1],
        "homepage": homepage,
        "license": "BSL-1.0",
        "dependencies": [*boost_ports(), "nlohmann-json", {"name": "vcpkg-cmake", "host": True},
                         {"name": "vcpkg-cmake-config", "host": True}],
        "features": {part: {"description": f"weir::{part}", "dependencies": [port]} for part, port in PORTS.items()},
    }, indent=2) + "\n", encoding="utf-8")
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    (out / "portfile.cmake").write_text(f'''set(VCPKG_BUILD_TYPE release) # headers

vcpkg_download_distfile(archive
  URLS "{url}"
  FILENAME "weir-${{VERSION}}.tar.gz"
  SHA512 {digest})
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${{archive}}")
vcpkg_cmake_configure(SOURCE_PATH "${{SOURCE_PATH}}"
  OPTIONS -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/weir)
vcpkg_fixup_pkgconfig()
file(INSTALL "${{CMAKE_CURRENT_LIST_DIR}}/usage" DESTINATION "${{CURRENT_PACKAGES_DIR}}/share/${{PORT}}")
vcpkg_install_copyright(FILE_LIST "${{SOURCE_PATH}}/LICENSE")
''', encoding="utf-8")
    (out / "usage").write_text('''weir provides CMake targets: the core, and one for each feature that was chosen.

  find_package(weir CONFIG REQUIRED COMPONENTS sqlite)
  target_link_libraries(main PRIVATE weir::sqlite)
''', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--archive", "--url", "--homepage", "--out"):
        parser.add_argument(name, required=True)
    chosen = parser.parse_args()
    archive, out = pathlib.Path(chosen.archive), pathlib.Path(chosen.out)
    conan_center(out / "conan-center" / "recipes" / "weir", archive, chosen.url, chosen.homepage)
    vcpkg(out / "vcpkg" / "ports" / "weir", archive, chosen.url, chosen.homepage)


if __name__ == "__main__":
    main()
