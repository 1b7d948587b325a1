-- SPDX-License-Identifier: Apache-2.0
-- Lmod. The archive has this file as share/modulefiles/howmany/<version>.lua, from which it finds the
-- programs: module use DIR/share/modulefiles. If you copy it elsewhere, set root.
help([[
howmany measures how many GPUs, how many loader workers and which communication backend a training
job should use.

    howmany gpus -- python train.py
    howmany --help
]])
whatis("Name: howmany")
whatis("Version: " .. myModuleVersion())
whatis("Description: how many GPUs, loader workers, and which backend: measured")
conflict("howmany")

local root = myFileName():gsub("/share/modulefiles/howmany/[^/]*$", "")
prepend_path("PATH", pathJoin(root, "bin"))
-- The network interface of gloo between nodes, if the first one is not the right one:
-- setenv("HOWMANY_IFACE", "ib0")
