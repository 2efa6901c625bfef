# SPDX-License-Identifier: Apache-2.0
# Builds torii with Spack.
"""Recipe of Spack. Nobody has run it: Spack is not in Debian 12, on which torii is built and tested. Copy it into a
repository of yours as packages/torii/package.py, and set `git` to where you got torii from."""

from spack.package import *


class Torii(CMakePackage):
    """Collective communication on CPUs, with results that have the same bits every time."""

    # The address of the repository has to be filled in: this file does not know from where you cloned.
    # git = "..."

    license("Apache-2.0")

    version("main", branch="main")

    variant("shared", default=True, description="Build a shared library")
    variant("libfabric", default=True, description="Build the transport over libfabric")
    variant("ucx", default=False, description="Build the transport over UCX")
    variant("pmix", default=True, description="Let ranks join through PMIx")
    variant("python", default=False, description="Build the Python package")
    variant("perf", default=False, description="Build the programs that time the collectives")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("boost+context")
    depends_on("cli11", type="build")
    depends_on("fmt")
    depends_on("highway", type="build")
    depends_on("hwloc")
    depends_on("libsodium")
    depends_on("nlohmann-json", type="build")
    depends_on("xxhash")
    depends_on("libfabric", when="+libfabric")
    depends_on("ucx", when="+ucx")
    depends_on("pmix", when="+pmix")
    depends_on("benchmark", when="+perf", type="build")
    depends_on("python@3.11:", when="+python", type=("build", "run"))
    depends_on("py-numpy", when="+python", type="run")

    conflicts("+python", when="~shared")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("TORII_TESTS", False),
            # The component needs Open MPI's internal headers, which an Open MPI from Spack does not install by default.
            self.define("TORII_WITH_OPENMPI", False),
            self.define("TORII_WITH_GLOO", False),
            self.define("TORII_WITH_PYTORCH", False),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("TORII_PERF", "perf"),
            self.define_from_variant("TORII_WITH_LIBFABRIC", "libfabric"),
            self.define_from_variant("TORII_WITH_UCX", "ucx"),
            self.define_from_variant("TORII_WITH_PMIX", "pmix"),
            self.define_from_variant("TORII_WITH_PYTHON", "python"),
        ]
