/** Turns a body of type application/x-tpuprof-columns ("TPC1") into the same Payload that JSON gives, with typed arrays as columns. */
import type { BoolColumn, Column, NumberColumn, Payload, Table, TextColumn } from './types';

export const COLUMNS_TYPE = 'application/x-tpuprof-columns';

const MAGIC = 'TPC1';
const PREAMBLE_BYTES = 8;

const ARRAYS = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

type Dtype = keyof typeof ARRAYS;
export type ColumnArray = InstanceType<(typeof ARRAYS)[Dtype]>;

interface BufferHead {
  dtype: Dtype;
  /** Bytes from the end of the header. */
  offset: number;
  length: number;
  /** The buffer holds differences: a value is the running sum. */
  delta: boolean;
}

type Headed<C extends Column> = Omit<C, 'values' | 'codes'> & { buffer?: BufferHead };
type HeadTable = Omit<Table, 'columns'> & { columns: (Headed<TextColumn> | Headed<NumberColumn> | Headed<BoolColumn>)[] };
type HeadPayload = Omit<Payload, 'tables'> & { tables: Record<string, HeadTable> };

function runningSum(differences: ColumnArray): Float64Array<ArrayBuffer> {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++) {
    sum += differences[i] as number;
    values[i] = sum;
  }
  return values;
}

function decodeBuffer(body: ArrayBuffer, start: number, head: BufferHead): ColumnArray {
  const make = ARRAYS[head.dtype];
  if (!make) throw new Error(`unknown column type ${String(head.dtype)}`);
  const from = start + head.offset;
  const end = from + head.length * make.BYTES_PER_ELEMENT;
  if (head.offset < 0 || head.length < 0 || end > body.byteLength) throw new Error('a column reaches beyond the end of the answer');
  const raw = from % make.BYTES_PER_ELEMENT === 0 ? new make(body, from, head.length) : new make(body.slice(from, end));
  return head.delta ? runningSum(raw) : raw;
}

function decodeTable(table: HeadTable, body: ArrayBuffer, start: number): Table {
  const columns = table.columns.map((column): Column => {
    const { buffer, ...head } = column;
    if (!buffer) return column as Column;
    const array = decodeBuffer(body, start, buffer);
    return (head.kind === 'text' ? { ...head, codes: array } : { ...head, values: array }) as Column;
  });
  return { ...table, columns };
}

/** Throws Error where the body is not such an answer or is cut short. */
export function decodeColumns(body: ArrayBuffer): Payload {
  if (body.byteLength < PREAMBLE_BYTES) throw new Error('the answer is cut short');
  const magic = String.fromCharCode(...new Uint8Array(body, 0, 4));
  if (magic !== MAGIC) throw new Error('the answer is not in the binary column format');
  const headerBytes = new DataView(body).getUint32(4, true);
  const start = PREAMBLE_BYTES + headerBytes;
  if (start > body.byteLength) throw new Error('the answer is cut short');
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(body, PREAMBLE_BYTES, headerBytes))) as HeadPayload;
  const tables: Record<string, Table> = {};
  for (const [name, table] of Object.entries(head.tables)) tables[name] = decodeTable(table, body, start);
  return { ...head, tables };
}
