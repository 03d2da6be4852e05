/**
 * A box's colour: the family says what kind of work it is, the shade tells one name from another. The server
 * says both
 * (`family`, `color_key`); where it does not, the name does.
 */

import { shadeOf, SHADES } from '../../canvas/palette';

export interface Family {
  readonly name: string;
  /** What the legend says. */
  readonly title: string;
  /** The colour, a token of the theme. */
  readonly token: string;
}

/** In the order of the server's numbers. */
export const FAMILIES: readonly Family[] = [
  { name: 'other', title: 'Other', token: '--q-7' },
  { name: 'python', title: 'Python call', token: '--c-host' },
  { name: 'input', title: 'tf.data, input', token: '--c-input' },
  { name: 'op', title: 'XLA or framework op', token: '--c-compute' },
  { name: 'kernel', title: 'GPU kernel', token: '--q-6' },
  { name: 'memcpy', title: 'Memory copy', token: '--c-d2d' },
  { name: 'collective', title: 'Collective', token: '--c-collective' },
  { name: 'runtime', title: 'Runtime', token: '--c-launch' },
  { name: 'step', title: 'Step', token: '--c-idle' },
  { name: 'module', title: 'XLA module', token: '--q-0' },
];

export type FamilyName =
  'other' | 'python' | 'input' | 'op' | 'kernel' | 'memcpy' | 'collective' | 'runtime' | 'step' | 'module';

/** The first that matches decides. Python frames come first: what they call says nothing about them. */
const RULES: readonly (readonly [FamilyName, RegExp])[] = [
  ['python', /^\$/],
  [
    'input',
    /^Iterator::|IteratorGetNext|tf[._]data|InstantiatedCapturedFunction|\binfeed|PrefetchProduce|PrefetchConsume|DecodeJpeg|decode_jpeg|ReadFile|TFRecord/i,
  ],
  [
    'collective',
    /all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective|nccl|\bpsum\b|\bsend\b|\brecv\b/i,
  ],
  [
    'memcpy',
    /memcpy|memset|TransferTo|TransferFrom|TransferLiteral|CopyTo|CopyFrom|BufferFromHost|ToHost|FromHost|^copy([-._]|$)/i,
  ],
  // GPU kernels carry C++ names, and "::" must not make them runtime calls.
  ['kernel', /^void |gemm|cutlass|cudnn|MetaKernel|_kernel\b|^(volta|turing|ampere|hopper|sm\d+)_/i],
  ['step', /^\d+$|^(train|step|eval|predict)\b|StepMarker/],
  ['module', /^jit_|^SyncTensorsGraph|\(\d{6,}\)$/],
  [
    'runtime',
    /::|Execut|Enqueue|Launch|Schedule|ThreadPool|Dispatch|\bidle\b|^wait\b|WaitFor|\bsleep\b|compil|codegen|llvm/i,
  ],
];

export function familyOf(name: string): FamilyName {
  for (const [family, rule] of RULES) if (rule.test(name)) return family;
  return 'op';
}

export function styleOf(family: number, colorKey: number): number {
  return (family < FAMILIES.length ? family : 0) * SHADES + (((colorKey % SHADES) + SHADES) % SHADES);
}

/** "train 131" and "train 132" are the same thing again: steps are shaded without their numbers. */
export function styleOfName(name: string): number {
  const family = familyOf(name);
  const kind = family === 'step' ? name.replaceAll(/\d+/g, '') : name;
  return styleOf(
    FAMILIES.findIndex((each) => each.name === family),
    shadeOf(kind),
  );
}

const known = new Map<string, number>();

/** The style of each name; remembered, for the same names come with every window. */
export function stylesOfNames(names: readonly string[]): Uint8Array {
  if (known.size > 200_000) known.clear();
  return Uint8Array.from(names, (name) => {
    let style = known.get(name);
    if (style === undefined) known.set(name, (style = styleOfName(name)));
    return style;
  });
}
