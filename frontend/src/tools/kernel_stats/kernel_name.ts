/**
 * Short names of C++ kernels: without namespaces, parameters and the wrapping that all kernels of a library
 * share. Pure.
 */

const EIGEN_ARRAY = /TensorMap<Tensor<(\w+)(?:, \w+)*>(?:, \w+)*>/g;
const EIGEN_ASSIGNMENT = /^EigenMetaKernel<TensorEvaluator<TensorAssignOp<\w+, (.*)>, GpuDevice>, \w+>$/;
const EIGEN_ELEMENTWISE = /^TensorCwise\w+Op<(.*)>$/;
const EIGEN_WITH_SCALAR = /^scalar_(?:left|right)<\w+, \w+, (.*), \w+>$/;
/** A matrix product of Tensile: its arrays, its types and its tile say what it is, the rest how it was tuned. */
const TENSILE = /^(Cijk_\w+?_MT\d+x\d+x\d+)_/;
const EIGEN_OPERATION = /^(?:Tensor(\w+)Op|scalar_(\w+)_op)</;

// PyTorch's kernels that apply a function to each element, or reduce with one: the function is what they compute.
const APPLIES = /^(\w*(?:elementwise|reduce)_kernel\w*)<((?:\d+, )*)(.*)>$/;
const FUNCTION = /\b(\w*(?:Functor\w*|_kernel_cuda|_kernel_impl|_kernel|Ops))\b((?:<[^<>]*>)?)/g;
const WRAPPER = /^(?:gpu_kernel_impl|[AB]?(?:Unary|Binary)Functor)$/;

/** `elementwise_kernel<128, 4, MulFunctor<float>>` → `MulFunctor<float> (elementwise_kernel<128, 4>)`. */
function byFunction(plain: string): string {
  const [, kernel = '', sizes = '', rest = ''] = APPLIES.exec(plain) ?? [];
  const applied = [...rest.matchAll(FUNCTION)].find(([, name = '']) => !WRAPPER.test(name));
  if (!applied) return plain;
  const size = sizes.replace(/, $/, '');
  return `${applied[0]} (${kernel}${size && `<${size}>`})`;
}

/** The text before the first such character outside any template. */
function upTo(end: string, text: string): string {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === end && depth <= 0) return text.slice(0, i);
    if (character === '<') depth++;
    else if (character === '>') depth--;
  }
  return text;
}

/**
 * `void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, …)` →
 * `CUDAFunctor_add<float> (vectorized_elementwise_kernel<4>)`; one of Eigen's kernels → its expression; one of
 * Tensile's → its name up to the tile. A name that is no C++ template stays unchanged.
 */
export function shortKernel(name: string): string {
  const tensile = TENSILE.exec(name)?.[1];
  if (tensile) return tensile;
  const whole = name.replaceAll('(anonymous namespace)::', '').replace(/^void /, '');
  if (!/^[\w:]+<.*>/.test(whole)) return name;
  const plain = upTo('(', whole)
    .replace(/\b[A-Za-z_]\w*::/g, '')
    .replace(/ const\b/g, '')
    .replace(/ >/g, '>');
  const [, assigned] = EIGEN_ASSIGNMENT.exec(plain.replace(EIGEN_ARRAY, '$1')) ?? [];
  if (!assigned) return byFunction(plain);
  const computed = upTo(',', EIGEN_ELEMENTWISE.exec(assigned)?.[1] ?? assigned);
  return `Eigen ${(EIGEN_WITH_SCALAR.exec(computed)?.[1] ?? computed).replace(EIGEN_OPERATION, '$1$2<')}`;
}

function wordsOf(name: string): Set<string> {
  return new Set(name.match(TENSILE.test(name) ? /[A-Za-z0-9]+/g : /\w+/g));
}

/** The word of a name that fewest of the names have, the longest of several; empty: all have the same words. */
function rarestWord(name: string, names: readonly string[]): string {
  const others = names.filter((other) => other !== name).map(wordsOf);
  let rarest = '';
  let least = others.length;
  for (const word of wordsOf(name)) {
    const nSharing = others.filter((words) => words.has(word)).length;
    if (nSharing < least || (nSharing === least && rarest && word.length > rarest.length)) {
      rarest = word;
      least = nSharing;
    }
  }
  return rarest;
}

/** Short names of kernels; where several would read the same, a word of the name tells them apart. */
export function shortKernels(names: Iterable<string>): Map<string, string> {
  const byShort = new Map<string, string[]>();
  for (const name of new Set(names)) {
    const short = shortKernel(name);
    byShort.set(short, [...(byShort.get(short) ?? []), name]);
  }
  const labels = new Map<string, string>();
  for (const [short, group] of byShort) {
    for (const name of group) {
      const word = group.length > 1 ? rarestWord(name, group) : '';
      labels.set(name, word ? `${short} (${word})` : short);
    }
  }
  return labels;
}
