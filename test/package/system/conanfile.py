"""Stands for a package of the public index, under the same reference, and gives what this machine has installed.

Exported once for each of `system` below, by --name and --version (run.py does it), because the index cannot be reached
everywhere. Only weir's test uses it.
"""

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration

# What each brings: the package's CMake file and targets, as in the public index, and libraries to link.
system = {
    "boost": ("Boost", {"headers": ("Boost::headers", [])}),
    "nlohmann_json": ("nlohmann_json", {None: ("nlohmann_json::nlohmann_json", [])}),
    "sqlite3": ("SQLite3", {None: ("SQLite::SQLite3", ["sqlite3"])}),
    "openssl": (
        "OpenSSL",
        {"ssl": ("OpenSSL::SSL", ["ssl"]), "crypto": ("OpenSSL::Crypto", ["crypto"])},
    ),
    "libpq": ("PostgreSQL", {"pq": ("PostgreSQL::PostgreSQL", ["pq"])}),
    # As a flag: by its name CMake would take the test's own program nats for it.
    "cnats": ("cnats", {None: ("cnats::nats", ["-lnats"])}),
}


class SystemConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    options = {"include": [None, "ANY"]}  # where its headers are, unless the compiler looks there
    default_options = {"include": None}

    def validate(self):
        if self.name not in system:
            raise ConanInvalidConfiguration(f"no system package stands for {self.name}")

    def package_id(self):
        self.info.clear()

    def package_info(self):
        file_name, components = system[self.name]
        self.cpp_info.set_property("cmake_file_name", file_name)
        for component, (target, libraries) in components.items():
            info = self.cpp_info.components[component] if component else self.cpp_info
            info.set_property("cmake_target_name", target)
            info.bindirs, info.libdirs = [], []
            info.includedirs = [str(self.options.include)] if self.options.include else []
            info.system_libs = libraries
