// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/mpi_types.h"

#include "parallel/engines/combine.h"

namespace howmany {
namespace {

MPI_Datatype type_for(float) { return MPI_FLOAT; }
MPI_Datatype type_for(double) { return MPI_DOUBLE; }
MPI_Datatype type_for(int32_t) { return MPI_INT32_T; }
MPI_Datatype type_for(int64_t) { return MPI_INT64_T; }
MPI_Datatype type_for(uint8_t) { return MPI_UINT8_T; }
MPI_Datatype type_for(Bf16) { return MPI_UINT16_T; }

// What MPI calls for an operation that it does not have: out = in op out.
template <Dtype dtype, ReduceOp op>
void combine_for_mpi(void* in, void* out, int* count, MPI_Datatype*) {
  combine_of(dtype, op)(out, in, out, static_cast<size_t>(*count));
}

template <Dtype dtype, ReduceOp op>
MPI_Op make_op() {
  MPI_Op made = MPI_OP_NULL;
  check_mpi(MPI_Op_create(combine_for_mpi<dtype, op>, /*commute=*/1, &made));
  return made;
}

template <Dtype dtype>
MPI_Op made_op_of(ReduceOp op) {
  static const MPI_Op sum = make_op<dtype, ReduceOp::sum>(), max = make_op<dtype, ReduceOp::max>(),
                      min = make_op<dtype, ReduceOp::min>();
  if (op == ReduceOp::sum) return sum;
  return op == ReduceOp::max ? max : min;
}

MPI_Op made_op(Dtype dtype, ReduceOp op) {
  if (dtype == Dtype::bf16) return made_op_of<Dtype::bf16>(op);
  return dtype == Dtype::f32 ? made_op_of<Dtype::f32>(op) : made_op_of<Dtype::f64>(op);
}

bool is_floating(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f64; }

}  // namespace

MPI_Datatype type_of(Dtype dtype) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return type_for(type{});
    HM_DTYPES(X)
#undef X
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op op_of(Dtype dtype, ReduceOp op) {
  if (dtype == Dtype::bf16 || (op != ReduceOp::sum && is_floating(dtype)))
    return made_op(dtype, op);
  if (op == ReduceOp::sum) return MPI_SUM;
  return op == ReduceOp::max ? MPI_MAX : MPI_MIN;
}

Part::Part(Dtype dtype, int64_t elements)
    : count(static_cast<int>(elements)), type(type_of(dtype)) {
  if (elements <= kMaxElements) return;
  const int64_t blocks = elements / kMaxElements;
  const auto width = static_cast<int64_t>(size_of(dtype));
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(static_cast<int>(kMaxElements), type, &block));
  const int lengths[] = {static_cast<int>(blocks), static_cast<int>(elements % kMaxElements)};
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(blocks * kMaxElements * width)};
  const MPI_Datatype types[] = {block, type};
  check_mpi(MPI_Type_create_struct(2, lengths, places, types, &made_));
  check_mpi(MPI_Type_commit(&made_));
  MPI_Type_free(&block);
  count = 1;
  type = made_;
}

}  // namespace howmany
