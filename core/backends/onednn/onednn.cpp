#include "core/backends/onednn/onednn.h"

namespace howmany::backends {

std::unique_ptr<Backend> onednn() { return std::make_unique<howmany::onednn::OneDnn>(); }

}  // namespace howmany::backends
