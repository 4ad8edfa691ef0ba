import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.scm import Version

required_conan_version = ">=2.0"

# The oldest that weir has been seen to be compiled by. Others are not refused.
compiler_floors = {"gcc": "12", "clang": "16"}

# The stores on an engine: each is an option with_<store>, and its client library's package and components.
stores = {
    "sqlite": ("sqlite3/[>=3.37 <4]", ["sqlite3::sqlite3"]),
    "redis": ("openssl/[>=1.1 <4]", ["openssl::ssl", "openssl::crypto"]),
    "postgres": ("libpq/[>=14 <19]", ["libpq::libpq"]),
    "nats": ("cnats/[>=3.4 <4]", ["cnats::cnats"]),
}

# Other optional parts, with the same option: no stores, so nothing of them is compiled.
observers = {
    "opentelemetry": ("opentelemetry-cpp/[>=1.19 <2]", ["opentelemetry-cpp::opentelemetry-cpp"]),
}
parts = {**stores, **observers}


class WeirConan(ConanFile):
    name = "weir"
    description = "Concurrency limits, uniqueness, rate limits and job queues for Boost.Asio services"
    license = "BSL-1.0"
    topics = ("asio", "coroutines", "rate-limiter", "job-queue", "semaphore", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "compiled": [True, False],  # weir::compiled, and weir::compiled_<part>: static libraries
        **{f"with_{part}": [True, False] for part in parts},  # weir::<part>
    }
    default_options = {"compiled": False, **{f"with_{part}": False for part in parts}}
    implements = ["auto_header_only"]
    no_copy_source = True
    exports = "include/weir/version.hpp"  # where the version is written, the only place
    exports_sources = "include/*", "cmake/*", "CMakeLists.txt", "LICENSE"
    test_package_folder = "test/package"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "weir", "version.hpp"))
        parts = re.findall(r"#define WEIR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(parts)

    def configure(self):
        self.package_type = "static-library" if self.options.compiled else "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # Also of a static library, whose headers Conan would take to need none of theirs.
        self.requires("boost/[>=1.88 <2]", transitive_headers=True)
        self.requires("nlohmann_json/[>=3.10 <4]", transitive_headers=True)
        for part in self.chosen(parts):
            self.requires(parts[part][0], transitive_headers=True)

    def chosen(self, among):
        return [part for part in among if self.options.get_safe(f"with_{part}")]

    def libraries(self):
        """What is compiled once, if anything is."""
        if not self.options.compiled:
            return []
        return ["compiled", "compiled_console", *(f"compiled_{store}" for store in self.chosen(stores))]

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)
        compiler = str(self.settings.get_safe("compiler"))
        floor = compiler_floors.get(compiler)
        if floor and Version(self.settings.compiler.version) < floor:
            raise ConanInvalidConfiguration(f"weir needs {compiler} {floor} or later")

    def generate(self):
        if self.options.compiled:
            CMakeDeps(self).generate()
            toolchain = CMakeToolchain(self)
            for part in ("TESTS", "EXAMPLES", "BENCH"):
                toolchain.cache_variables[f"WEIR_BUILD_{part}"] = False
            toolchain.user_presets_path = False
            toolchain.generate()

    def build(self):
        if self.options.compiled:
            cmake = CMake(self)
            cmake.configure()
            for library in self.libraries():
                cmake.build(target=f"weir_{library}")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(
            self,
            "*.hpp",
            os.path.join(self.source_folder, "include"),
            os.path.join(self.package_folder, "include"),
        )
        for pattern in ("*.a", "*.lib"):
            copy(self, pattern, self.build_folder, os.path.join(self.package_folder, "lib"), keep_path=False)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "weir")
        core = self.component("core", "weir", ["boost::headers", "nlohmann_json::nlohmann_json"])
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        for part in ("testing", "console"):
            self.component(part, part, ["core"])
        for part in self.chosen(parts):
            self.component(part, part, ["core", *parts[part][1]])
        for library in self.libraries():
            part = library.removeprefix("compiled").removeprefix("_")
            compiled = self.component(library, library, ["compiled", part] if part else ["core"])
            compiled.libdirs = ["lib"]
            compiled.libs = [f"weir_{library}"]
            compiled.defines = ["WEIR_SEPARATE_COMPILATION"]

    def component(self, name, target, requires):
        """A component of headers alone."""
        out = self.cpp_info.components[name]
        out.set_property("cmake_target_name", f"weir::{target}")
        out.bindirs = []
        out.libdirs = []
        out.requires = requires
        return out
