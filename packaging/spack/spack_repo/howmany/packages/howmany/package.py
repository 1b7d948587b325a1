# SPDX-License-Identifier: Apache-2.0
# For Spack 1.0 and later: spack repo add packaging/spack/spack_repo/howmany; spack install howmany
# scripts/recipes fills in the address and the checksum.

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Howmany(CMakePackage, CudaPackage):
    """Measures how many GPUs, how many loader workers and which communication backend a training
    job should use, before you ask a cluster for them."""

    homepage = "https://github.com/OWNER/howmany"
    url = "https://github.com/OWNER/howmany/releases/download/v0.3.0/howmany-0.3.0.tar.gz"

    license("Apache-2.0")

    version("0.3.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("gloo", default=True, description="Build the gloo backend")
    variant("mpi", default=True, description="Build the mpi backend")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.3:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("tomlplusplus@3.3:", type="build")
    depends_on("googletest@1.12: +gmock", type="build")
    depends_on("python@3.8:", type="build")

    depends_on("benchmark@1.7:")
    depends_on("boost@1.74:", type="build")
    depends_on("fmt@9:")
    depends_on("hwloc@2.9:")
    depends_on("jpeg")
    depends_on("libarchive")
    depends_on("libpng")
    depends_on("libwebp")
    depends_on("onednn@2.6:")
    depends_on("pcre2")
    depends_on("gloo@2023-05-19:2023-12-03", when="+gloo")
    depends_on("mpi", when="+mpi")
    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("cudnn@9:")
        depends_on("nccl")
        requires("+gloo", msg="the nccl backend exchanges its identifiers over gloo")

    conflicts("%gcc@:11", msg="howmany is C++20")

    @property
    def build_targets(self):
        return ["packed"]

    def cmake_args(self):
        args = [
            self.define("HM_WERROR", False),
            self.define_from_variant("HM_CUDA", "cuda"),
            self.define_from_variant("HM_MPI", "mpi"),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_Gloo", self.spec.satisfies("~gloo")),
        ]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            capabilities = self.spec.variants["cuda_arch"].value
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", capabilities))
        return args

    def test_selftest(self):
        """the installed programs compute right"""
        which(self.prefix.bin.howmany, required=True)("selftest", "--quick")
