import { describe, expect, it } from 'vitest';
import { shortKernel, shortKernels } from './kernel_name';

const map = (type: string): string =>
  `Eigen::TensorMap<Eigen::Tensor<${type}, 1, 1, long>, 16, Eigen::MakePointer>`;
const eigen = (value: string): string => {
  const type = `Eigen::TensorEvaluator<Eigen::TensorAssignOp<${map('Eigen::half')}, ${value} const> const, Eigen::GpuDevice>`;
  return `void Eigen::internal::EigenMetaKernel<${type}, long>(${type}, long)`;
};

describe('a kernel’s short name', () => {
  it('has no namespaces and no parameters', () => {
    const name =
      'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)';
    expect(shortKernel(name)).toBe('CUDAFunctor_add<float> (vectorized_elementwise_kernel<4>)');
    expect(shortKernel('void (anonymous namespace)::softmax<float, 8>(float*)')).toBe('softmax<float, 8>');
    expect(shortKernel('void at::(anonymous namespace)::softmax<float, (int)8>(float*)')).toBe(
      'softmax<float, (int)8>',
    );
  });

  it('begins with what an elementwise kernel of PyTorch computes', () => {
    const mul =
      'at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >';
    const lambda = (of: string): string =>
      `at::native::gpu_kernel_impl_nocast<${of} >(at::TensorIteratorBase&, ${of} const&)::{lambda(int)#1}`;
    const copy =
      'at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const';
    const names = [lambda(mul), lambda(copy), 'at::native::(anonymous namespace)::silu_kernel(int)'].map(
      (of) => `void at::native::elementwise_kernel<128, 4, ${of}>(int, ${of})`,
    );
    expect(names.map(shortKernel)).toEqual([
      'MulFunctor<float> (elementwise_kernel<128, 4>)',
      'direct_copy_kernel_cuda (elementwise_kernel<128, 4>)',
      'silu_kernel (elementwise_kernel<128, 4>)',
    ]);
    expect(
      shortKernel('void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, Own<4>>>(int)'),
    ).toBe('reduce_kernel<512, 1, ReduceOp<float, Own<4>>>');
  });

  it('tells what a kernel of Eigen computes', () => {
    expect(shortKernel(eigen(`Eigen::TensorConversionOp<Eigen::half, ${map('float const')} const>`))).toBe(
      'Eigen Conversion<half, float>',
    );
    const unary = `Eigen::TensorCwiseUnaryOp<Eigen::internal::scalar_right<bool, Eigen::half, Eigen::internal::greater_equal<Eigen::half>, false>, ${map('Eigen::half const')} const>`;
    expect(shortKernel(eigen(unary))).toBe('Eigen greater_equal<half>');
    const binary = `Eigen::TensorCwiseBinaryOp<Eigen::internal::scalar_sum_op<float const, float const>, ${map('float const')} const, ${map('float const')} const>`;
    expect(shortKernel(eigen(binary))).toBe('Eigen sum<float, float>');
  });

  it('of a matrix product of Tensile ends with its tile, and names its tuning where that is all that differs', () => {
    const tuned = (tile: string, tuning: string): string =>
      `Cijk_Ailk_Bljk_BBS_BH_MT${tile}_MI16x16x16x1_SN_1LDSB1_${tuning}_WS64_WG64_4_1_WGM32.kd`;
    const names = [
      tuned('256x256x64', 'GRPM0p24_SU0'),
      tuned('256x256x64', 'GRPM0p26_SU8'),
      tuned('64x32x8', 'SU0'),
    ];
    expect([...shortKernels(names).values()]).toEqual([
      'Cijk_Ailk_Bljk_BBS_BH_MT256x256x64 (GRPM0p24)',
      'Cijk_Ailk_Bljk_BBS_BH_MT256x256x64 (GRPM0p26)',
      'Cijk_Ailk_Bljk_BBS_BH_MT64x32x8',
    ]);
  });

  it('is the name where that is no template', () => {
    for (const name of [
      'loop_convert_fusion.kd',
      'ampere_sgemm_128x64_tn',
      'Cijk_Ailk_Bljk_BBS_BH_MT256x128x32',
      'triton_poi_fused_add_0',
      'Other',
      'a < b > c',
      '',
    ])
      expect(shortKernel(name)).toBe(name);
  });
});

describe('short names of several kernels', () => {
  it('are told apart by a word where they would be equal', () => {
    const side = (name: string): string =>
      eigen(
        `Eigen::TensorCwiseUnaryOp<Eigen::internal::scalar_${name}<Eigen::half, Eigen::half, Eigen::internal::scalar_product_op<Eigen::half, Eigen::half>, false>, ${map('Eigen::half const')} const>`,
      );
    const labels = shortKernels([side('left'), side('right'), 'gemm']);
    expect([...labels.values()]).toEqual([
      'Eigen product<half, half> (scalar_left)',
      'Eigen product<half, half> (scalar_right)',
      'gemm',
    ]);
  });
});
