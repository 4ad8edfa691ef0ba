import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load, save
from conan.tools.scm import Version

required_conan_version = ">=2.0"

# The oldest that weir has been seen to be compiled by. Others are not refused.
compiler_floors = {"gcc": "12", "clang": "16"}


class WeirConan(ConanFile):
    name = "weir"
    description = "Concurrency limits, uniqueness, rate limits and job queues for Boost.Asio services"
    license = "BSL-1.0"
    topics = ("asio", "coroutines", "rate-limiter", "job-queue", "semaphore", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "with_sqlite": [True, False],  # weir::sqlite, the store on a file
        "with_redis": [True, False],  # weir::redis, the store on a Redis or Valkey server
        "with_postgres": [True, False],  # weir::postgres, the store in a PostgreSQL database
        "with_nats": [True, False],  # weir::nats, the store on NATS JetStream
    }
    default_options = {
        "with_sqlite": False,
        "with_redis": False,
        "with_postgres": False,
        "with_nats": False,
    }
    implements = ["auto_header_only"]
    no_copy_source = True
    exports = "include/weir/version.hpp"  # where the version is written, the only place
    exports_sources = "include/*", "LICENSE"
    test_package_folder = "test/package"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "weir", "version.hpp"))
        parts = re.findall(r"#define WEIR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(parts)

    def requirements(self):
        self.requires("boost/[>=1.88 <2]")
        self.requires("nlohmann_json/[>=3.10 <4]")
        if self.options.with_sqlite:
            self.requires("sqlite3/[>=3.37 <4]")
        if self.options.with_redis:
            self.requires("openssl/[>=1.1 <4]")
        if self.options.with_postgres:
            self.requires("libpq/[>=14 <19]")
        if self.options.with_nats:
            self.requires("cnats/[>=3.4 <4]")

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)
        compiler = str(self.settings.get_safe("compiler"))
        floor = compiler_floors.get(compiler)
        if floor and Version(self.settings.compiler.version) < floor:
            raise ConanInvalidConfiguration(f"weir needs {compiler} {floor} or later")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(
            self,
            "*.hpp",
            os.path.join(self.source_folder, "include"),
            os.path.join(self.package_folder, "include"),
        )

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "weir")
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "weir::weir")
        core.bindirs = []
        core.libdirs = []
        core.requires = ["boost::headers", "nlohmann_json::nlohmann_json"]
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        testing = self.cpp_info.components["testing"]
        testing.set_property("cmake_target_name", "weir::testing")
        testing.bindirs = []
        testing.libdirs = []
        testing.requires = ["core"]
        if self.options.with_sqlite:
            sqlite = self.cpp_info.components["sqlite"]
            sqlite.set_property("cmake_target_name", "weir::sqlite")
            sqlite.bindirs = []
            sqlite.libdirs = []
            sqlite.requires = ["core", "sqlite3::sqlite3"]
        if self.options.with_redis:
            redis = self.cpp_info.components["redis"]
            redis.set_property("cmake_target_name", "weir::redis")
            redis.bindirs = []
            redis.libdirs = []
            redis.requires = ["core", "openssl::ssl", "openssl::crypto"]
        if self.options.with_postgres:
            postgres = self.cpp_info.components["postgres"]
            postgres.set_property("cmake_target_name", "weir::postgres")
            postgres.bindirs = []
            postgres.libdirs = []
            postgres.requires = ["core", "libpq::libpq"]
        if self.options.with_nats:
            nats = self.cpp_info.components["nats"]
            nats.set_property("cmake_target_name", "weir::nats")
            nats.bindirs = []
            nats.libdirs = []
            nats.requires = ["core", "cnats::cnats"]
