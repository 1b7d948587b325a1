#%Module1.0
# SPDX-License-Identifier: Apache-2.0
# Environment Modules. The archive has this file as share/modulefiles/howmany/<version>, from which it
# finds the programs: module use DIR/share/modulefiles. If you copy it elsewhere, set root.
proc ModulesHelp {} {
    puts stderr "howmany measures how many GPUs, how many loader workers and which communication backend a"
    puts stderr "training job should use.\n"
    puts stderr "    howmany gpus -- python train.py"
    puts stderr "    howmany --help"
}
module-whatis "how many GPUs, loader workers, and which backend: measured"
conflict howmany

set share [file dirname [file dirname [file dirname $ModulesCurrentModulefile]]]
set root [file dirname $share]
prepend-path PATH $root/bin
# The network interface of gloo between nodes, if the first one is not the right one:
# setenv HOWMANY_IFACE ib0
