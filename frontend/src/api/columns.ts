/**
 * Decodes a body of type application/x-tpuprof-columns ("TPC1") into the same Payload that JSON gives, with
 * typed arrays as columns.
 */
import type { BoolColumn, Column, NumberColumn, Payload, Table, TextColumn } from './types';

export const COLUMNS_TYPE = 'application/x-tpuprof-columns';

const MAGIC = 'TPC1';
const PREAMBLE_BYTES = 8;

const FLOATS = { f4: Float32Array, f8: Float64Array } as const;
const MAX_INT_BYTES = 7;
const FEW_PLANES = 4;

type ColumnArray = Uint8Array<ArrayBuffer> | Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

interface BufferHead {
  /** f4, f8, or u1–u7 and i1–i7: integers of that many bytes. */
  dtype: string;
  /** Bytes from the end of the header. */
  offset: number;
  length: number;
  /** The buffer holds differences: a value is the running sum. */
  delta: boolean;
  /** A value is base + scale × the number in the buffer. */
  base?: number;
  scale?: number;
  /** Differences are from where the row before ends: the column of lengths. */
  after?: string;
}

/** `buffers`: one for each part of the table. */
type Headed<C extends Column> = Omit<C, 'values' | 'codes'> & {
  buffer?: BufferHead;
  buffers?: BufferHead[];
};
type HeadColumn = Headed<TextColumn> | Headed<NumberColumn> | Headed<BoolColumn>;
type HeadTable = Omit<Table, 'columns'> & {
  columns: HeadColumn[];
  /** The part that each row is sent in. */
  parts?: BufferHead;
};
type HeadPayload = Omit<Payload, 'tables'> & { tables: Record<string, HeadTable> };

/** Up to four planes in one pass, as 32-bit integers. */
function fromFewPlanes(
  bytes: Uint8Array,
  n: number,
  nPlanes: number,
  isSigned: boolean,
): Float64Array<ArrayBuffer> {
  const values = new Float64Array(n);
  const spare = 32 - 8 * nPlanes;
  for (let i = 0; i < n; i++) {
    let value = bytes[i] as number;
    if (nPlanes > 1) value |= (bytes[n + i] as number) << 8;
    if (nPlanes > 2) value |= (bytes[2 * n + i] as number) << 16;
    if (nPlanes > 3) value |= (bytes[3 * n + i] as number) << 24;
    values[i] = isSigned ? (value << spare) >> spare : value >>> 0;
  }
  return values;
}

/** Integers stored as byte planes, all lowest bytes first. */
function fromPlanes(bytes: Uint8Array, n: number, isSigned: boolean): Float64Array<ArrayBuffer> {
  const nPlanes = bytes.length / Math.max(n, 1);
  if (nPlanes <= FEW_PLANES) return fromFewPlanes(bytes, n, nPlanes, isSigned);
  const values = new Float64Array(n);
  for (let plane = 0; plane < nPlanes; plane++) {
    const factor = 2 ** (8 * plane);
    const first = plane * n;
    const flip = isSigned && plane === nPlanes - 1 ? 128 : 0;
    // The highest byte of a signed number is -128 … 127.
    for (let i = 0; i < n; i++)
      values[i] = (values[i] as number) + (((bytes[first + i] as number) ^ flip) - flip) * factor;
  }
  return values;
}

function decodeInts(bytes: Uint8Array<ArrayBuffer>, isSigned: boolean, head: BufferHead): ColumnArray {
  const { length: n, delta, base = 0, scale = 1 } = head;
  if (bytes.length === n && !isSigned && !delta && base === 0 && scale === 1) return bytes;
  const values = fromPlanes(bytes, n, isSigned);
  if (delta) {
    let sum = 0;
    for (let i = 0; i < n; i++) values[i] = base + scale * (sum += values[i] as number);
  } else if (base !== 0 || scale !== 1) {
    for (let i = 0; i < n; i++) values[i] = base + scale * (values[i] as number);
  }
  return values;
}

function decodeBuffer(body: ArrayBuffer, start: number, head: BufferHead): ColumnArray {
  const [letter, width] = [head.dtype.slice(0, 1), Number(head.dtype.slice(1))];
  const isInt =
    (letter === 'u' || letter === 'i') && Number.isInteger(width) && width >= 1 && width <= MAX_INT_BYTES;
  const make = FLOATS[head.dtype as keyof typeof FLOATS] as (typeof FLOATS)[keyof typeof FLOATS] | undefined;
  if (!isInt && !make) throw new Error(`unknown column type ${head.dtype}`);
  const from = start + head.offset;
  const end = from + head.length * width;
  if (head.offset < 0 || head.length < 0 || end > body.byteLength)
    throw new Error('a column reaches beyond the end of the answer');
  if (!make) return decodeInts(new Uint8Array(body, from, head.length * width), letter === 'i', head);
  return from % width === 0 ? new make(body, from, head.length) : new make(body.slice(from, end));
}

/** The rows by part: `rows` lists them, and part k is those from `firsts[k]` to `firsts[k + 1]`. */
interface Parts {
  readonly rows: Int32Array;
  readonly firsts: readonly number[];
}

function partsOf(numbers: ColumnArray): Parts {
  const sizes: number[] = [];
  for (const part of numbers) sizes[part] = (sizes[part] ?? 0) + 1;
  const firsts = [0];
  for (let part = 0; part < sizes.length; part++) firsts.push((firsts[part] as number) + (sizes[part] ?? 0));
  const next = Int32Array.from(firsts);
  const rows = new Int32Array(numbers.length);
  for (let row = 0; row < numbers.length; row++) {
    const part = numbers[row] as number;
    rows[next[part] as number] = row;
    next[part] = (next[part] as number) + 1;
  }
  return { rows, firsts };
}

/** From gaps, which are running sums so far, to starts: each row follows the end of the one before. */
function addLengths(values: ColumnArray, lengths: ColumnArray): void {
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    values[i] = (values[i] as number) + sum;
    sum += lengths[i] as number;
  }
}

class TableReader {
  private readonly facts: Omit<HeadTable, 'columns' | 'parts'>;
  private readonly parts: Parts | null;
  private readonly columns: ReadonlyMap<string, HeadColumn>;

  constructor(
    table: HeadTable,
    private readonly body: ArrayBuffer,
    private readonly start: number,
  ) {
    const { columns, parts, ...facts } = table;
    this.facts = facts;
    this.parts = parts ? partsOf(decodeBuffer(body, start, parts)) : null;
    this.columns = new Map(columns.map((column) => [column.name, column]));
  }

  read(): Table {
    const columns = [...this.columns.values()].map((column): Column => {
      const { buffer, buffers, ...head } = column;
      if (!buffer && !buffers) return column as Column;
      const array = buffer ? decodeBuffer(this.body, this.start, buffer) : this.joined(buffers ?? []);
      return (head.kind === 'text' ? { ...head, codes: array } : { ...head, values: array }) as Column;
    });
    return { ...this.facts, columns };
  }

  /** A column of its parts, in the table's order. */
  private joined(buffers: readonly BufferHead[]): ColumnArray {
    if (!this.parts || buffers.length !== this.parts.firsts.length - 1)
      throw new Error('a column and its table have different parts');
    const { rows, firsts } = this.parts;
    const joined = new Float64Array(rows.length);
    for (const [part, head] of buffers.entries()) {
      const first = firsts[part] as number;
      if (head.length !== (firsts[part + 1] as number) - first)
        throw new Error('a part of a column has another length than its rows');
      const values = this.part(head, part);
      for (let i = 0; i < values.length; i++) joined[rows[first + i] as number] = values[i] as number;
    }
    return joined;
  }

  private part(head: BufferHead, part: number): ColumnArray {
    const values = decodeBuffer(this.body, this.start, head);
    if (head.after === undefined) return values;
    const lengths = this.columns.get(head.after)?.buffers?.[part];
    if (lengths?.length !== head.length || lengths.after !== undefined)
      throw new Error(`the column ${head.after}, which others follow, is missing`);
    addLengths(values, decodeBuffer(this.body, this.start, lengths));
    return values;
  }
}

/** Throws Error where the body has another format or is truncated. */
export function decodeColumns(body: ArrayBuffer): Payload {
  if (body.byteLength < PREAMBLE_BYTES) throw new Error('the answer is cut short');
  const magic = String.fromCharCode(...new Uint8Array(body, 0, 4));
  if (magic !== MAGIC) throw new Error('the answer is not in the binary column format');
  const headerBytes = new DataView(body).getUint32(4, true);
  const start = PREAMBLE_BYTES + headerBytes;
  if (start > body.byteLength) throw new Error('the answer is cut short');
  const head = JSON.parse(
    new TextDecoder().decode(new Uint8Array(body, PREAMBLE_BYTES, headerBytes)),
  ) as HeadPayload;
  const tables: Record<string, Table> = {};
  for (const [name, table] of Object.entries(head.tables))
    tables[name] = new TableReader(table, body, start).read();
  return { ...head, tables };
}
