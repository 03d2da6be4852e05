/**
 * The answers of the server, as docs/http_api.md describes them. Quantities end in their unit; unknown values
 * are null.
 */

type Unit =
  'ps' | 'bytes' | 'fraction' | 'flops_per_s' | 'bytes_per_s' | 'flops_per_byte' | 'count' | 'id' | '';

export interface RunInfo {
  run: string;
  /** ISO 8601, UTC; null where neither the name nor the files contain it. */
  captured_at: string | null;
  n_hosts: number;
  size_bytes: number;
  state: 'ok' | 'hlo' | 'memory' | 'legacy' | 'unsupported' | 'empty' | 'unreadable';
  message: string;
}

/** A tool as the menu lists it, whatever the run. */
export interface ListedTool {
  name: string;
  title: string;
  group: string;
  summary: string;
}

/** Where the source files below a prefix are on the web. */
interface SourceRule {
  prefix: string;
  address: string;
}

export interface RunsAnswer {
  plugin: string;
  version: string;
  /** The rules with the longest prefix first, and why others do not apply. */
  sources?: { links: SourceRule[]; problems: string[] };
  /** Newest first. */
  runs: RunInfo[];
  /** In the menu's order. */
  tools: ListedTool[];
}

/** A run as a list shows it, as far as it is known without reading large files. */
export interface RunCard {
  run: string;
  /** Empty: unknown; `CPU` without accelerators. */
  device: string;
  /** 0: unknown, or none. */
  n_devices: number;
  framework: string;
  /** Hosts whose files cannot be read. */
  damaged: string[];
}

export interface BadgesAnswer {
  run: string;
  /** By tool. */
  badges: Record<string, string>;
}

export interface HostInfo {
  host: string;
  size_bytes: number;
  /** Why its file cannot be read, if that is known; empty: nothing is known to be wrong. */
  failure: string;
}

interface ParamInfo {
  name: string;
  title: string;
  kind: 'bool' | 'int' | 'float' | 'text' | 'choice';
  default: boolean | number | string | null;
  choices: string[];
  help: string;
}

export interface ToolInfo extends ListedTool {
  /** How many hosts the tool shows at a time. */
  hosts: 'many' | 'one';
  available: boolean;
  reason: string;
  remedy: string;
  /** The reason in two words or so. */
  short_reason: string;
  params: ParamInfo[];
}

export interface ToolsAnswer {
  run: string;
  state: RunInfo['state'];
  message: string;
  hosts: HostInfo[];
  tools: ToolInfo[];
  /** Why none of its files can be read. */
  failure: ErrorAnswer['error'] | null;
}

type VerdictLevel = 'good' | 'warn' | 'bad' | 'unknown';

interface NextStep {
  text: string;
  /** The tool that shows it; empty: plain advice. */
  tool: string;
  params: Record<string, string>;
}

/** A row of one of the payload's tables that the sentence names, with the numbers it quotes, by column. */
interface Subject {
  table: string;
  column: string;
  name: string;
  values: Record<string, number | null>;
}

export interface Verdict {
  level: VerdictLevel;
  /** The category of time it is about, which gives its color; or empty. */
  category: string;
  text: string;
  details: string[];
  next: NextStep[];
  subjects?: Subject[];
}

export interface Scalar {
  value: number | boolean | null;
  unit: Unit;
  title: string;
  /** Adds a second figure; where the value is unknown, the reason. */
  note: string;
  /** The sentence that defines it. */
  description?: string;
  formula?: string;
  /** The formula with this run's numbers. */
  working?: string;
}

interface ColumnHead {
  name: string;
  title: string;
  unit: Unit;
  description?: string;
  formula?: string;
  /** The reason for its unknown cells. */
  unknown?: string;
}

/** Numbers as JSON (null: unknown) or as a typed array (NaN: unknown); read them with `numberAt`. */
type Numbers = ArrayLike<number | null>;

export interface TextColumn extends ColumnHead {
  kind: 'text';
  strings: string[];
  /** One index into `strings` per row; -1: unknown. */
  codes: ArrayLike<number>;
}

export interface NumberColumn extends ColumnHead {
  kind: 'number';
  values: Numbers;
}

export interface BoolColumn extends ColumnHead {
  kind: 'bool';
  values: ArrayLike<boolean | number | null>;
}

export type Column = TextColumn | NumberColumn | BoolColumn;

export interface Table {
  title: string;
  note: string;
  /** What it shows, in a sentence. */
  description?: string;
  /** How a page without a view of its own draws it. */
  chart?: 'donut' | 'steps';
  columns: Column[];
  n_rows: number;
}

export interface Diagnostic {
  severity: 'info' | 'warning' | 'error';
  message: string;
  remedy: string;
}

export interface Payload {
  tool: string;
  run: string;
  hosts: string[];
  verdict: Verdict | null;
  /** False: the verdict may contain more if requested again with `diagnosis=wait`. */
  is_diagnosed: boolean;
  scalars: Record<string, Scalar>;
  /** The scalars that the page shows at its top, in this order. */
  tiles: string[];
  tables: Record<string, Table>;
  diagnostics: Diagnostic[];
}

/** Progress of reading a run; `host`: one of those being read, empty when all are. */
export interface Reading {
  host: string;
  n_hosts: number;
  n_done: number;
  size_bytes: number;
  done_bytes: number;
  seconds: number;
}

export interface ProgressAnswer {
  /** null: nothing is being read. */
  reading: Reading | null;
}

export interface ErrorAnswer {
  /** `parameter`: the invalid field, if the error is about one; `details`: a file's path, a position. */
  error: { kind: string; message: string; remedy: string; parameter?: string; details?: string };
}
