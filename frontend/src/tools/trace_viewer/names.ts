/** An event's name becomes its colour: the family says what kind of work it is, the shade tells one name from another. */

import { shadeOf, SHADES } from '../../canvas/palette';

/** Families in the order of their style numbers; each is a category of time of the theme. */
export const FAMILIES = ['compute', 'input', 'output', 'collective', 'd2d', 'host', 'compile', 'launch', 'idle'] as const;

export type Family = (typeof FAMILIES)[number];

/** The first that matches decides. Python frames come first: what they call says nothing about them. */
const RULES: readonly (readonly [Family, RegExp])[] = [
  ['host', /^\$/],
  ['idle', /\bidle\b|^wait\b|WaitFor|::Wait\b|\bsleep\b/i],
  ['input', /^Iterator::|IteratorGetNext|tf[._]data|InstantiatedCapturedFunction|\binfeed|PrefetchProduce|PrefetchConsume|DecodeJpeg|decode_jpeg|ReadFile|TFRecord/i],
  ['output', /outfeed|checkpoint|SaveV2/i],
  ['collective', /all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective|nccl|\bpsum\b|\bsend\b|\brecv\b/i],
  ['d2d', /memcpy|memset|TransferTo|TransferFrom|TransferLiteral|CopyTo|CopyFrom|BufferFromHost|ToHost|FromHost|^copy([-._]|$)/i],
  ['compile', /compil|jaxpr|codegen|HloPass|\blower(ing)?\b|llvm|autotun/i],
  // GPU kernels carry C++ names, and "::" must not make them runtime calls.
  ['compute', /^void |gemm|cutlass|cudnn|MetaKernel|_kernel\b|^(volta|turing|ampere|hopper|sm\d+)_/i],
  ['launch', /^\d+$|^(train|step|eval|predict)\b|StepMarker|::|Execut|Enqueue|Launch|Schedule|ThreadPool|Dispatch/],
];

export function familyOf(name: string): Family {
  for (const [family, rule] of RULES) if (rule.test(name)) return family;
  return 'compute';
}

/** "train 131" and "train 132" are the same thing again: steps and launches are shaded without their numbers. */
export function styleOf(name: string): number {
  const family = familyOf(name);
  const kind = family === 'launch' ? name.replaceAll(/\d+/g, '') : name;
  return FAMILIES.indexOf(family) * SHADES + shadeOf(kind);
}

const known = new Map<string, number>();

/** The style of each name; remembered, for the same names come with every window. */
export function stylesOf(names: readonly string[]): Uint8Array {
  if (known.size > 200_000) known.clear();
  return Uint8Array.from(names, (name) => {
    let style = known.get(name);
    if (style === undefined) known.set(name, (style = styleOf(name)));
    return style;
  });
}
