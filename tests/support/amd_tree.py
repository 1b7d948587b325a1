# SPDX-License-Identifier: Apache-2.0
"""A false root folder (HOWMANY_ROOT) with the files of AMD's and Intel's kernel drivers in sysfs and /dev."""

GIB = 1 << 30
MI250X = {"device_id": 0x7408, "gfx_target_version": 90010}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_cpu(root, node):
    folder = root / f"sys/class/kfd/kfd/topology/nodes/{node}"
    write(folder / "gpu_id", "0\n")
    write(folder / "name", "\n")
    write(folder / "properties", "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\n")


def add_gpu(root, node, bus, unique_id=None, memory=64 * GIB, links=(), product="", **properties):
    """Returns the folder of its node. `links` are nodes with an Infinity Fabric link."""
    folder = root / f"sys/class/kfd/kfd/topology/nodes/{node}"
    minor = 128 + node
    write(folder / "gpu_id", f"{1000 + node}\n")
    write(folder / "name", "aldebaran\n")
    lines = {"cpu_cores_count": 0, "simd_count": 440, "vendor_id": 0x1002, "location_id": bus << 8, "domain": 0,
             "drm_render_minor": minor, "local_mem_size": 0, "unique_id": unique_id or 0} | MI250X | properties
    write(folder / "properties", "".join(f"{key} {value}\n" for key, value in lines.items()))
    write(folder / "mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {memory}\nflags 0\n")
    for number, to in enumerate(links):
        write(folder / f"io_links/{number}/properties", f"type 11\nnode_from {node}\nnode_to {to}\n")
    device = root / f"sys/bus/pci/devices/0000:{bus:02x}:00.0"
    write(device / "numa_node", f"{node % 4}\n")
    write(device / "local_cpulist", f"{16 * (node % 4)}-{16 * (node % 4) + 15}\n")
    write(device / "gpu_busy_percent", "75\n")
    write(device / "mem_info_vram_used", "12000000000\n")
    write(device / "product_name", product + "\n")
    write(root / f"dev/dri/renderD{minor}", "")
    return folder


def add_kfd(root):
    write(root / "dev/kfd", "")
    write(root / "sys/module/amdgpu/version", "6.8.5\n")


def lumi_node(root):
    """Four CPU nodes, then the 8 GCDs of four MI250X; those of a package are linked."""
    add_kfd(root)
    for node in range(4):
        add_cpu(root, node)
    for gcd, bus in enumerate((0xc1, 0xc6, 0xc9, 0xce, 0xd1, 0xd6, 0xd9, 0xde)):
        add_gpu(root, 4 + gcd, bus, unique_id=0xa1b2c3d4e5f60000 + gcd, links=[4 + (gcd ^ 1)])
    return root


def add_intel(root, address, driver, device_class="0x030000"):
    device = root / "sys/devices/pci0000:00" / address
    write(device / "vendor", "0x8086\n")
    write(device / "class", device_class + "\n")
    drivers = root / "sys/bus/pci/drivers" / driver
    drivers.mkdir(parents=True, exist_ok=True)
    (device / "driver").symlink_to(drivers)
    render = root / "sys/class/drm/renderD128"
    render.mkdir(parents=True)
    (render / "device").symlink_to(device)
