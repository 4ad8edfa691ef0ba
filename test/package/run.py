#!/usr/bin/env python3
"""Takes weir as its users do, each way in a folder of its own, and runs what comes of it.

usage: run.py --work DIR [--fast] [--jobs N] [--conan CONAN] [--boost PREFIX] [--opentelemetry PREFIX] [--cxx COMPILER]

Ways: an installation and find_package or pkg-config, add_subdirectory, plain -I, and (with --conan) a Conan package. In
each, one program for each component that it asks for is built and run, header-only and with what is compiled once; and
where a component's library is missing, what is said is compared with what should be. The files that README.md and
docs/install.md show are taken as they stand there, and the recipes for ConanCenter and vcpkg are made and used. --fast
does one of each kind instead of all, and leaves those recipes out. Up to four ways are taken side by side, which run N
compilers together; what each has to say is told when it has ended.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STORES = ["sqlite", "redis", "postgres", "nats"]
# What the two pages build; test/static/readme_programs.py holds README.md to the first.
README_PROGRAM = "example/sqlite_mail.cpp"
INSTALL_PROGRAM = "example/redis_limiter.cpp"
# What each store's header needs: its client library's CMake name, and the linker's.
CLIENTS = {
    "sqlite": ("SQLite3", ["-lsqlite3"]),
    "redis": ("OpenSSL", ["-lssl", "-lcrypto"]),
    "postgres": ("PostgreSQL", ["-lpq"]),
    "nats": ("cnats", ["-lnats"]),
}
# What is said where a header is missing (and all of its folder): program, header, first error.
MISSING = [
    ("core", "boost", "weir needs the headers of Boost 1.88 or later"),
    ("core", "nlohmann", "weir needs the headers of nlohmann/json 3.10 or later"),
    ("sqlite", "sqlite3.h", "weir/store/sqlite.hpp needs SQLite 3.37 or later"),
    ("redis", "openssl", "weir/store/redis.hpp needs OpenSSL"),
    ("postgres", "libpq-fe.h", "weir/store/postgres.hpp needs libpq 14 or later"),
    ("nats", "nats", "weir/store/nats.hpp needs the NATS C client 3.4 or later"),
]
MODES = {"header-only": "-DWEIR_COMPILED=OFF", "compiled": "-DWEIR_COMPILED=ON"}
# As in weir's own build: g++ would spend a quarter of its time on collecting its garbage.
UNCOLLECTED = ["--param", "ggc-min-heapsize=2097152"]
# System packages under the references of the public index: header (below an include folder) and the expression in it
# that gives the version.
INDEX = {
    "boost": ("boost/version.hpp", r'BOOST_LIB_VERSION "(\d+)_(\d+)(?:_(\d+))?"'),
    "nlohmann_json": (
        "nlohmann/json.hpp|nlohmann/detail/abi_macros.hpp",
        r"VERSION_MAJOR (\d+)[\s\S]*?VERSION_MINOR (\d+)[\s\S]*?VERSION_PATCH (\d+)",
    ),
    "sqlite3": ("sqlite3.h", r'SQLITE_VERSION\s+"(\d+)\.(\d+)\.(\d+)'),
    "openssl": ("openssl/opensslv.h", r"MAJOR\s+(\d+)[\s\S]*?MINOR\s+(\d+)[\s\S]*?PATCH\s+(\d+)"),
    "libpq": ("pg_config.h|postgresql/pg_config.h", r'PG_VERSION "(\d+)(?:\.(\d+))?'),
    "cnats": ("nats/version.h", r'VERSION_STRING "(\d+)\.(\d+)\.(\d+)'),
}


class Failed(Exception):
    pass


def run(*command, expect=None, cwd=None, env=None):
    """Runs a command. It has to succeed; or, with `expect`, to fail and to print what matches that."""
    command = [str(word) for word in command]
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if expect is None and done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stdout[-6000:]}")
    if expect is not None:
        said = " ".join(done.stdout.split())
        if done.returncode == 0:
            raise Failed(f"should have failed: {' '.join(command)}")
        if not re.search(expect, said):
            raise Failed(f"should say /{expect}/: {' '.join(command)}\n{done.stdout[-6000:]}")
    return done.stdout


class Ways:
    def __init__(self, arguments):
        self.fast = arguments.fast
        self.work = pathlib.Path(arguments.work).resolve()
        self.beside = min(arguments.jobs, 4)  # ways at once, each with its share of the compilers
        self.jobs = max(1, arguments.jobs // self.beside)
        self.told = threading.local()
        self.conan = arguments.conan
        self.cxx = arguments.cxx
        self.compiler = [self.cxx, *(UNCOLLECTED if "g++" in self.cxx else [])]
        # CMake's own way to tell, Conan's too.
        os.environ["CXXFLAGS"] = " ".join([*os.environ.get("CXXFLAGS", "").split(), *self.compiler[1:]])
        self.boost = pathlib.Path(arguments.boost).resolve() if arguments.boost else None
        self.opentelemetry = pathlib.Path(arguments.opentelemetry).resolve() if arguments.opentelemetry else None
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def take(self, *ways):
        """Takes the ways side by side, and tells what each said when it has ended."""
        def one(way):
            self.told.lines = []
            try:
                way()
            except Failed as failure:
                self.tell(f"FAILED: {failure}")
                return self.told.lines, False
            except Exception:
                self.tell(f"FAILED: {traceback.format_exc()}")
                return self.told.lines, False
            return self.told.lines, True

        taken = True
        with concurrent.futures.ThreadPoolExecutor(self.beside) as pool:
            try:
                for done in concurrent.futures.as_completed([pool.submit(one, way) for way in ways]):
                    lines, succeeded = done.result()
                    print("".join(f"{line}\n" for line in lines), end="", flush=True)
                    taken = taken and succeeded
            except BaseException:  # a signal: nothing more is begun
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return taken

    def tell(self, line):
        self.told.lines.append(line)

    def say(self, way, programs):
        self.tell(f"{way}: {', '.join(programs)}")

    def run_program(self, program):
        self.tell(f"  {run(program, cwd=self.work).strip().splitlines()[-1]}")

    def cmake(self, name, *options, expect=None):
        """Configures this folder's project in a build folder of this name."""
        prefixes = [str(p) for p in (self.work / "prefix", self.boost, self.opentelemetry) if p]
        build = self.work / name
        run("cmake", "-S", HERE, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={self.cxx}",
            f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}", *options, expect=expect)
        return build

    def programs(self, build, names):
        run("cmake", "--build", build, "-j", self.jobs)
        for name in names:
            self.run_program(build / name)

    def configure(self, name, *options):
        """Configures weir to be installed, in a build folder of this name."""
        prefixes = f"-DCMAKE_PREFIX_PATH={self.boost}" if self.boost else "-DCMAKE_PREFIX_PATH="
        build = self.work / name
        run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={self.cxx}", prefixes,
            "-DWEIR_BUILD_TESTS=OFF", "-DWEIR_BUILD_EXAMPLES=OFF", "-DWEIR_BUILD_BENCH=OFF", *options)
        return build

    def install(self):
        run("cmake", "--install", self.configure("weir"), "--prefix", self.work / "prefix")

    # ------------------------------------------------------------------------------------ the ways

    def project(self, name, page, program, *blocks):
        """A folder of this name with a program, and what the page shows: the file of each kind of block."""
        folder = self.work / name
        folder.mkdir()
        text = (ROOT / page).read_text(encoding="utf-8")
        for kind, file in blocks:
            shown = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
            if len(shown) != 1:
                raise Failed(f"{page} shows {len(shown)} blocks of {kind}, and should one")
            (folder / file).write_text(shown[0], encoding="utf-8")
        shutil.copy(ROOT / program, folder / "main.cpp")
        return folder

    def build_project(self, folder):
        prefixes = ";".join(str(p) for p in (self.work / "prefix", self.boost) if p)
        run("cmake", "-S", folder, "-B", folder / "plain", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={self.cxx}",
            f"-DCMAKE_PREFIX_PATH={prefixes}")
        run("cmake", "--build", folder / "plain", "-j", self.jobs)

    def readme(self):
        self.say("README.md, add_subdirectory, compiled", ["its first program"])
        folder = self.project("readme", "README.md", README_PROGRAM, ("cmake", "CMakeLists.txt"))
        (folder / "weir").symlink_to(ROOT)  # in place of a clone
        self.build_project(folder)
        run(sys.executable, ROOT / "test" / "integration" / "mail.py", folder / "plain" / "mail")

    def install_page(self):
        self.say("docs/install.md, find_package", ["the program for Redis"])
        folder = self.project("install-page", "docs/install.md", INSTALL_PROGRAM, ("cmake", "CMakeLists.txt"))
        self.build_project(folder)
        run(folder / "plain" / "your_service", expect="usage: redis_limiter")

    def find_package(self):
        # The fast way leaves out what the two pages show, SQLite, compiled once, and Redis, and what pkg-config finds.
        wanted = ["testing", "console"] + [s for s in STORES if not self.fast or s == "nats"]
        if self.opentelemetry:
            wanted.append("opentelemetry")
        for mode in list(MODES)[:1] if self.fast else MODES:
            self.say(f"find_package(weir COMPONENTS …), {mode}", wanted)
            build = self.cmake(f"find-{mode}", f"-DWEIR_COMPONENTS={';'.join(wanted)}", MODES[mode])
            self.programs(build, ["core"] + wanted)
        self.cmake("find-no-opentelemetry", "-DWEIR_COMPONENTS=opentelemetry",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_opentelemetry-cpp=ON",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_OpenTelemetryApi=ON",
                   expect=r"weir::opentelemetry needs .*\(opentelemetry-cpp\), which is not found")
        for store in STORES:
            client = CLIENTS[store][0]
            self.cmake(f"find-no-{store}", f"-DWEIR_COMPONENTS={store}",
                       f"-DCMAKE_DISABLE_FIND_PACKAGE_{client}=ON",
                       expect=rf"weir::{store} needs .*\({client}\), which is not found")
        self.cmake("find-unknown", "-DWEIR_COMPONENTS=kafka", expect="weir has no component 'kafka'")
        # Who asks for nothing gets what can be had, and is not refused for what cannot.
        self.cmake("find-core", *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{CLIENTS[s][0]}=ON" for s in STORES))

    def pkg_config(self):
        """From what `install` has installed."""
        wanted = ["postgres"] if self.fast else ["core"] + STORES
        self.say("pkg-config", wanted)
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.work / "prefix" / "share" / "pkgconfig"))
        # The folder of headers may be anywhere.
        apart = self.configure("weir-apart", "-DCMAKE_INSTALL_INCLUDEDIR=/opt/weir/headers")
        flags = run("pkg-config", "--cflags", "weir", env=dict(os.environ, PKG_CONFIG_PATH=str(apart)))
        if "-I/opt/weir/headers" not in flags.split():
            raise Failed(f"pkg-config finds the headers by {flags}")
        # So may that of pkg-config's files.
        deep = self.work / "deep"
        run("cmake", "--install", self.configure("weir-deep", "-DCMAKE_INSTALL_DATADIR=lib/weir/share"), "--prefix", deep)
        flags = run("pkg-config", "--cflags-only-I", "weir",
                    env=dict(os.environ, PKG_CONFIG_PATH=str(deep / "lib" / "weir" / "share" / "pkgconfig")))
        if not pathlib.Path(flags.strip().removeprefix("-I"), "weir.hpp").exists():
            raise Failed(f"pkg-config finds the headers of a deep folder by {flags}")
        build = self.work / "pkg-config"
        build.mkdir()
        for name in wanted:
            package = "weir" if name == "core" else f"weir-{name}"
            flags = run("pkg-config", "--cflags", "--libs", package, env=env).split()
            boost = ["-isystem", self.boost / "include"] if self.boost else []
            run(*self.compiler, "-std=c++20", HERE / f"{name}.cpp", "-o", build / name, *boost, *flags)
            self.run_program(build / name)

    def add_subdirectory(self):
        wanted = ["redis"] if self.fast else ["testing", "console"] + STORES
        for mode in MODES:
            self.say(f"add_subdirectory, {mode}", wanted)
            build = self.cmake(f"subdirectory-{mode}", f"-DWEIR_SOURCE={ROOT}", f"-DWEIR_COMPONENTS={';'.join(wanted)}",
                               MODES[mode])
            if not self.fast:
                self.programs(build, ["core"] + wanted)
        self.cmake("subdirectory-own-json", f"-DWEIR_SOURCE={ROOT}", "-DWEIR_OWN_JSON=ON",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON")
        # There the target is missing, and what is said before names the reason.
        self.cmake("subdirectory-no-redis", f"-DWEIR_SOURCE={ROOT}", "-DWEIR_COMPONENTS=redis",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON",
                   expect=r"there is no weir::redis: it needs OpenSSL \(OpenSSL\), which is not found")

    def plain(self):
        wanted = ["sqlite"] if self.fast else ["core", "testing", "console"] + STORES
        include = ["-std=c++20", "-I", ROOT / "include"]
        if self.boost:
            include += ["-isystem", self.boost / "include"]
        include += ["-isystem", "/usr/include/postgresql", "-pthread"]
        build = self.work / "plain"
        build.mkdir()
        apart = build / "weir.cpp"
        apart.write_text('#include "weir/src.hpp"\n' + "".join(
            f'#include "weir/{part}/src.hpp"\n' for part in ["console", *(f"store/{s}" for s in STORES)]
            if part.removeprefix("store/") in wanted), encoding="utf-8")
        libraries = [library for s in wanted for library in CLIENTS.get(s, ("", []))[1]]
        for mode in MODES:
            self.say(f"-I include, {mode}", wanted)
            flags, objects = include, []
            if mode == "compiled":
                flags, objects = [*include, "-DWEIR_SEPARATE_COMPILATION"], [build / "weir.o"]
                run(*self.compiler, *flags, "-c", apart, "-o", build / "weir.o")
            for name in wanted:
                run(*self.compiler, *flags, HERE / f"{name}.cpp", *objects, "-o", build / name, *libraries)
                self.run_program(build / name)

    def missing(self):
        """Compiles with an include path from which one header, or folder, has been taken away."""
        self.say("-I include, without", [header for _, header, _ in MISSING])
        said = run(self.cxx, "-std=c++20", "-E", "-v", "-x", "c++", "/dev/null")
        folders = said.split("#include <...> search starts here:")[1].split("End of search list.")[0].split()
        folders = [*([self.boost / "include"] if self.boost else []), *folders, "/usr/include/postgresql"]
        for program, header, error in MISSING:
            include = []
            for number, folder in enumerate(pathlib.Path(f) for f in folders):
                if (folder / header).exists():
                    shadow = self.work / f"without-{header}" / str(number)
                    shadow.mkdir(parents=True)
                    for entry in folder.iterdir():
                        if entry.name != header:
                            (shadow / entry.name).symlink_to(entry)
                    folder = shadow
                include += ["-isystem", folder]
            run(self.cxx, "-std=c++20", "-nostdinc", "-nostdinc++", "-I", ROOT / "include", *include,
                "-fsyntax-only", HERE / f"{program}.cpp", expect=rf"^\S*In file included [^#]*error: .{{0,9}}{error}")
        for flag, error in (("-std=c++17", r"weir needs C\+\+20 with coroutines and concepts"),
                            ("-fno-exceptions", "weir needs exceptions"), ("-fno-rtti", "weir needs .* type information")):
            run(self.cxx, "-std=c++20", flag, "-I", ROOT / "include", "-fsyntax-only", HERE / "core.cpp", expect=error)

    # ------------------------------------------------------------------------------- public indexes

    def recipes(self):
        """Makes the recipes for the public indexes, of a release that is here, and takes weir by them."""
        folder = self.work / "recipes"
        archive = folder / "weir.tar.gz"
        folder.mkdir()
        with tarfile.open(archive, "w:gz") as release:
            for part in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
                release.add(ROOT / part, f"weir-release/{part}")
        run(sys.executable, ROOT / "cmake" / "recipes.py", "--archive", archive, "--url", f"file://{archive}",
            "--homepage", "https://example.org/weir", "--out", folder)
        self.vcpkg_port(folder / "vcpkg" / "ports" / "weir")
        if self.conan:
            self.conan_center(folder / "conan-center" / "recipes" / "weir")

    def vcpkg_port(self, port):
        self.say("the port for vcpkg", ["sqlite"])
        manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"))
        work = self.work / "vcpkg"
        run("cmake", f"-DPORT_FOLDER={port}", f"-DVERSION={manifest['version']}", f"-DWORK={work}",
            f"-DBOOST={self.boost or ''}", f"-DCXX={self.cxx}", "-P", HERE / "vcpkg.cmake")
        share = work / "package" / "share" / "weir"
        build = self.cmake("vcpkg-project", f"-Dweir_DIR={share}", "-DWEIR_COMPONENTS=sqlite", MODES["header-only"])
        self.programs(build, ["sqlite"])
        for file in ("copyright", "usage"):
            if not (share / file).is_file():
                raise Failed(f"the port installs no {file}")

    def conan_center(self, recipe):
        self.say("the recipe for ConanCenter", ["sqlite"])
        home = self.work / "conan-center"
        env = dict(os.environ, CONAN_HOME=str(home), CXX=self.cxx, CC="clang-19" if "clang" in self.cxx else "gcc")

        def conan(*arguments):
            return run(self.conan, *arguments, env=env, cwd=self.work)

        conan("profile", "detect")
        (home / "global.conf").write_text(self.conan_settings())
        conan("remote", "disable", "*")
        text = (recipe / "all" / "conanfile.py").read_text(encoding="utf-8")
        for package in ("boost", "nlohmann_json", "sqlite3"):
            version = re.search(rf'"{package}/(?:\[>=)?([0-9.]+)', text)[1]
            conan("export", HERE / "system", f"--name={package}", f"--version={version}")
        version = re.search(r'"(.*)"', (recipe / "config.yml").read_text(encoding="utf-8"))[1]
        boost = ["-o", f"boost/*:include={self.boost / 'include'}"] if self.boost else []
        out = conan("create", recipe / "all", f"--version={version}", "--build=missing", "-s", "compiler.cppstd=20",
                    "-o=weir/*:with_sqlite=True", *boost)
        for line in re.findall(r"^(?:weir \d.*|weir::testing: .*|SQLite .*)$", out, re.M):
            self.tell(f"  {line}")

    # --------------------------------------------------------------------------------------- Conan

    def conan_settings(self):
        return f"tools.cmake.cmaketoolchain:generator=Ninja\ntools.build:jobs={self.jobs}\n"  # make need not be there

    def includes(self):
        return ([self.boost / "include"] if self.boost else []) + [
            pathlib.Path("/usr/local/include"), pathlib.Path("/usr/include"),
            *pathlib.Path("/usr/include").glob("*-linux-gnu")]

    def system_version(self, package):
        headers, expression = INDEX[package]
        for folder in self.includes():
            for header in headers.split("|"):
                if (folder / header).is_file():
                    text = (folder / header).read_text(encoding="utf-8", errors="replace")
                    if found := re.search(expression, text):
                        return ".".join(part or "0" for part in found.groups()), (folder / header)
        raise Failed(f"no header tells which {package} this machine has")

    def conan_packages(self):
        wanted = [(STORES, False)] if self.fast else [([], False), *(([store], False) for store in STORES), (STORES, False),
                                                      ([], True), (STORES, True)]
        home = self.work / "conan"
        env = dict(os.environ, CONAN_HOME=str(home), CXX=self.cxx, CC="clang-19" if "clang" in self.cxx else "gcc")

        def conan(*arguments, expect=None):
            return run(self.conan, *arguments, env=env, cwd=self.work, expect=expect)

        conan("profile", "detect")
        (home / "global.conf").write_text(self.conan_settings())
        conan("remote", "disable", "*")
        options = []
        for package in INDEX:
            version, header = self.system_version(package)
            conan("export", HERE / "system", f"--name={package}", f"--version={version}")
            if package == "boost" and self.boost:
                options += ["-o", f"boost/*:include={self.boost / 'include'}"]
            if package == "libpq" and header.parent.name == "postgresql":
                options += ["-o", f"libpq/*:include={header.parent}"]
        if not self.fast:
            self.say("docs/install.md, Conan", ["the program for Redis"])
            folder = self.project("install-page-conan", "docs/install.md", INSTALL_PROGRAM, ("cmake", "CMakeLists.txt"),
                                  ("ini", "conanfile.txt"))
            conan("export", ROOT)
            conan("install", folder, "--build=missing", "-s", "compiler.cppstd=20", *options)
            run("cmake", "--preset", "conan-release", cwd=folder, env=env)
            run("cmake", "--build", "--preset", "conan-release", cwd=folder, env=env)
            run(folder / "build" / "Release" / "your_service", expect="usage: redis_limiter")
            # CMake says it where its target was not asked of Conan.
            conan("install", folder, "--build=missing", "-s", "compiler.cppstd=20", "-o", "weir/*:with_redis=False",
                  *options)
            run("cmake", "--preset", "conan-release", "--fresh", cwd=folder, env=env,
                expect="weir::redis but the target was not found")
        if self.fast:
            # Half the time, and two thirds of that without what a debugger needs.
            options += ["-s", "build_type=Debug",
                        "-c", "tools.cmake.cmaketoolchain:extra_variables={'CMAKE_CXX_FLAGS_DEBUG': '-O0'}"]
        for stores, compiled in wanted:
            self.say("Conan, compiled, with" if compiled else "Conan, with", stores or ["nothing else"])
            chosen = [f"-o=weir/*:with_{s}=True" for s in stores] + [f"-o=weir/*:compiled={compiled}"]
            out = conan("create", ROOT, "--build=missing", "-s", "compiler.cppstd=20", *chosen, *options,
                        "-c", f"tools.cmake.cmake_layout:test_folder={self.work / 'conan-test'}")
            for line in re.findall(r"^(?:weir \d.*|weir::testing: .*|SQLite .*|Redis: .*|libpq .*|NATS C client .*)$", out, re.M):
                self.tell(f"  {line}")
        conan("create", ROOT, "--build=missing", "-s", "compiler.cppstd=17", *options,
              expect="Current cppstd \\(17\\) is lower than the required C\\+\\+ standard \\(20\\)")
        conan("create", ROOT, "--build=missing", "-s", "compiler=gcc", "-s", "compiler.version=11",
              "-s", "compiler.cppstd=20", *options, expect="weir needs gcc 12 or later")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--conan")
    parser.add_argument("--boost")
    parser.add_argument("--opentelemetry")
    parser.add_argument("--cxx", default="g++")
    ways = Ways(parser.parse_args())
    # What takes longest begins first.
    each = [ways.find_package, ways.pkg_config, ways.readme, ways.install_page, ways.add_subdirectory, ways.plain,
            ways.missing]
    if ways.conan:
        each.insert(0, ways.conan_packages)
    if not ways.fast:
        each.append(ways.recipes)
    taken = ways.take(ways.install) and ways.take(*each)
    if taken:
        print("weir can be taken in all these ways")
    return 0 if taken else 1


if __name__ == "__main__":
    sys.exit(main())
