# SPDX-License-Identifier: Apache-2.0
# labels: process cpu_only
"""Tests `howmany devices` on machines with AMD and Intel GPUs, of which a folder has the files."""

import programs
from amd_tree import GIB, add_gpu, add_intel, add_kfd, lumi_node


class AmdDevices(programs.TestCase):
    def devices(self, *arguments, **environment):
        return programs.run("howmany-devices", *arguments, HOWMANY_ROOT=str(self.folder), **environment)

    def found(self, **environment):
        done = self.devices("--json", **environment)
        self.assertEqual(done.code, 0, done)
        return done.json()

    def buses(self, found):
        return [gpu["pci_bus"][5:7] for gpu in found["gpus"]]

    def test_the_gcds_of_a_node_are_listed(self):
        lumi_node(self.folder)
        found = self.found()
        self.assertEqual(found["gpus"][1], {
            "index": 1, "vendor": "amd", "name": "AMD Instinct MI250X", "target": "gfx90a", "integrated": False,
            "uuid": "GPU-a1b2c3d4e5f60001", "memory_bytes": 64 * GIB, "pci_bus": "0000:c6:00.0", "numa_node": 1,
            "near_cores": "16-31"})
        self.assertEqual(len(found["gpus"]), 8)
        self.assertEqual([(link["from"], link["to"], link["link"]) for link in found["gpu_links"]],
                         [(i, i + 1, "XGMI") for i in range(0, 8, 2)])
        self.assertEqual((found["driver"], found["gpus_hidden"]), ("amdgpu 6.8.5", 0))
        self.assertIn("7: AMD Instinct MI250X, 68.7 GB, at 0000:de:00.0, gfx90a", self.devices().out)
        self.assertIn("models need NVIDIA", self.devices().out)

    def test_rocr_selects_first_and_hip_among_the_rest(self):
        lumi_node(self.folder)
        for environment, buses in [({"ROCR_VISIBLE_DEVICES": "7,2"}, ["de", "c9"]),
                                   ({"ROCR_VISIBLE_DEVICES": "7,2", "HIP_VISIBLE_DEVICES": "1"}, ["c9"]),
                                   ({"ROCR_VISIBLE_DEVICES": "7,2", "CUDA_VISIBLE_DEVICES": "1"}, ["c9"]),
                                   ({"HIP_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "1"}, ["ce"]),
                                   ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "1"}, ["c6"]),
                                   ({"ROCR_VISIBLE_DEVICES": "gpu-A1B2C3D4E5F60003"}, ["ce"]),
                                   ({"ROCR_VISIBLE_DEVICES": "GPU-a1b2"}, []), ({"ROCR_VISIBLE_DEVICES": ""}, []),
                                   ({"HIP_VISIBLE_DEVICES": "-1"}, [])]:
            with self.subTest(environment):
                found = self.found(**environment)
                self.assertEqual(self.buses(found), buses)
                self.assertEqual([gpu["index"] for gpu in found["gpus"]], list(range(len(buses))))
                self.assertEqual(found["gpus_hidden"], 8 - len(buses))

    def test_the_variables_that_hide_gpus_are_named(self):
        lumi_node(self.folder)
        found = self.found(ROCR_VISIBLE_DEVICES="0,1", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(found["gpus_hidden_by"], "ROCR_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES")
        self.assertIn("7 more, hidden by ROCR_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES",
                      self.devices(ROCR_VISIBLE_DEVICES="0,1", CUDA_VISIBLE_DEVICES="1").out)
        self.assertIn("all are hidden by HIP_VISIBLE_DEVICES", self.found(HIP_VISIBLE_DEVICES="-1")["gpus_because"])

    def test_gpus_of_other_jobs_are_not_counted(self):
        lumi_node(self.folder)
        for node in (4, 5, 6, 7, 8, 9):  # a device cgroup: reading fails
            (self.folder / f"sys/class/kfd/kfd/topology/nodes/{node}/gpu_id").unlink()
        found = self.found(ROCR_VISIBLE_DEVICES="1")
        self.assertEqual(self.buses(found), ["de"])
        (self.folder / "dev/kfd").unlink()
        found = self.found()
        self.assertEqual(found["gpus"], [])
        self.assertIn("/dev/kfd", found["gpus_because"])

    def test_nvidia_gpus_come_first(self):
        lumi_node(self.folder)
        driver = {"LD_LIBRARY_PATH": str(programs.BIN / "fake_driver")}
        self.assertEqual([gpu["vendor"] for gpu in self.found(**driver)["gpus"]], ["nvidia", "nvidia"])
        self.assertEqual(self.found(CUDA_VISIBLE_DEVICES="", **driver)["gpus"], [])
        broken = self.found(HM_TEST_NVML="broken", **driver)
        self.assertEqual([gpu["vendor"] for gpu in broken["gpus"]], ["amd"] * 8)

    def test_processor_graphics_are_marked(self):
        add_kfd(self.folder)
        add_gpu(self.folder, 1, 0xc1, gfx_target_version=110003, device_id=0x15bf, memory=GIB // 2)
        gpu, = self.found()["gpus"]
        self.assertEqual((gpu["integrated"], gpu["name"]), (True, "AMD gfx1103"))

    def test_intel_gpus_are_refused_with_a_sentence(self):
        add_intel(self.folder, "0000:3a:00.0", "xe", "0x038000")
        found = self.found()
        self.assertEqual(found["gpus"], [])
        self.assertIn("Intel GPUs (driver xe) are not supported", found["gpus_because"])

    def test_graphics_of_intel_processors_are_not_mentioned(self):
        add_intel(self.folder, "0000:00:02.0", "i915")
        self.assertNotIn("Intel", self.found()["gpus_because"])


programs.main()
