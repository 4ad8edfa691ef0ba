"""What `conan create` builds to see that the package can be used: this folder's project, with what the options give."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class WeirTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def chosen(self):
        return self.dependencies[self.tested_reference_str].options

    def components(self):
        options = self.chosen()
        stores = ["sqlite", "redis", "postgres", "nats"]
        return ["testing", "console"] + [s for s in [*stores, "opentelemetry"] if options.get_safe(f"with_{s}")]

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["WEIR_COMPONENTS"] = ";".join(self.components())
        toolchain.cache_variables["WEIR_COMPILED"] = bool(self.chosen().compiled)
        toolchain.user_presets_path = False  # none of ours for whoever opens this folder
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ["core"] + self.components():
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
