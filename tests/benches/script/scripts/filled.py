# SPDX-License-Identifier: Apache-2.0
"""Two processes that are the first of 4 ranks in a rehearsal: objects really go from one to the other."""
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
assert rank in (0, 1) and dist.get_world_size() == 4
for root in (0, 1):
    sent = [f"from rank {rank}"]
    dist.broadcast_object_list(sent, root)
    assert sent == [f"from rank {root}"], sent
sent = ["mine"]
dist.broadcast_object_list(sent, 0, group=dist.new_group([0, 1, 2, 3]))

import ddp  # noqa: E402, F401
