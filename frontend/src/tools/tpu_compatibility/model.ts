/** The tree of scopes: which rows are open and visible, a scope's link, the operations in a scope. Pure. */
import { readTable, type RowsOf } from '../../api/declared';
import { TPU_COMPATIBILITY } from '../../api/tables/tpu_compatibility';
import type { Payload } from '../../api/types';
import type { TableData } from '../../widgets/table/model';

export const { tables: TABLES } = TPU_COMPATIBILITY.page;

export interface Scope {
  row: number;
  parent: number;
  depth: number;
  name: string;
  path: string;
  fn: string;
  nValid: number;
  nInvalid: number;
  nNotChecked: number;
  children: number[];
}

/** Open at first: the paths to incompatible operations, but no more rows than a screen holds. */
const ROWS_AT_FIRST = 24;

/** Up to 20,000 rows, so they are read column by column. */
export function scopesOf(payload: Payload): Scope[] {
  const rows = readTable(payload, TABLES.scopes);
  const [name, path, fn] = [rows.text('name'), rows.text('path'), rows.text('function')];
  const [parentOf, nValid, nInvalid, nNotChecked] = [
    rows.number('parent'),
    rows.number('n_valid'),
    rows.number('n_invalid'),
    rows.number('n_not_checked'),
  ];
  const scopes: Scope[] = [];
  for (let row = 0; row < rows.length; row++) {
    const parent = parentOf(row) ?? -1;
    const above = scopes[parent];
    above?.children.push(row);
    scopes.push({
      row,
      parent,
      depth: above ? above.depth + 1 : 0,
      name: name(row),
      path: path(row),
      fn: fn(row),
      nValid: nValid(row) ?? 0,
      nInvalid: nInvalid(row) ?? 0,
      nNotChecked: nNotChecked(row) ?? 0,
      children: [],
    });
  }
  return scopes;
}

/** A scope in the link; empty is the whole graph. The group of functions is no scope of operations. */
export function keyOf(scope: Scope): string {
  if (scope.row === 0) return '';
  return scope.fn ? `${scope.fn}:${scope.path === scope.fn ? '' : scope.path}` : scope.path;
}

export function scopeOfKey(scopes: readonly Scope[], key: string | undefined): Scope | undefined {
  return key ? scopes.find((scope) => keyOf(scope) === key) : undefined;
}

/** Level by level, as long as there is room: always the root, then scopes with incompatible operations. */
export function openAtFirst(scopes: readonly Scope[]): Set<number> {
  const open = new Set<number>();
  let shown = 1;
  let level = scopes.slice(0, 1);
  while (level.length) {
    const next: Scope[] = [];
    for (const scope of level) {
      if (
        !scope.children.length ||
        (scope.row > 0 && (!scope.nInvalid || shown + scope.children.length > ROWS_AT_FIRST))
      )
        continue;
      open.add(scope.row);
      shown += scope.children.length;
      next.push(...scope.children.flatMap((child) => scopes[child] ?? []));
    }
    level = next;
  }
  return open;
}

/** The link's `open`: rows whose state differs from the default. */
export function openRows(scopes: readonly Scope[], text: string | undefined): Set<number> {
  const open = openAtFirst(scopes);
  for (const part of (text ?? '').split('.')) {
    const row = Number(part);
    if (!part || !Number.isInteger(row) || !scopes[row]?.children.length) continue;
    if (!open.delete(row)) open.add(row);
  }
  return open;
}

export function toggled(text: string | undefined, row: number): string | undefined {
  const rows = new Set((text ?? '').split('.').filter(Boolean));
  if (!rows.delete(String(row))) rows.add(String(row));
  return [...rows].join('.') || undefined;
}

/**
 * The link's `boxes` after scopes of the drawing were opened or closed, as `3o` and `17c`; earlier entries of
 * the same scope are dropped.
 */
export function boxesWith(
  text: string | undefined,
  rows: readonly number[],
  isOpen: boolean,
): string | undefined {
  const changedRows = new Set(rows);
  const otherParts = (text ?? '')
    .split('.')
    .filter((part) => part && !changedRows.has(Number.parseInt(part, 10)));
  return [...otherParts, ...rows.map((row) => `${row}${isOpen ? 'o' : 'c'}`)].join('.') || undefined;
}

/**
 * A scope and its ancestors, from the top, without the whole graph: those to open so that its contents are
 * drawn.
 */
export function wayTo(scopes: readonly Scope[], scope: Scope): number[] {
  const way: number[] = [];
  for (
    let ancestor: Scope | undefined = scope;
    ancestor && ancestor.row > 0;
    ancestor = scopes[ancestor.parent]
  )
    way.unshift(ancestor.row);
  return way;
}

/**
 * Rows of the tree in order: those whose ancestors are all open. `isInvalidOnly` leaves out scopes without
 * incompatible operations.
 */
export function visible(
  scopes: readonly Scope[],
  open: ReadonlySet<number>,
  isInvalidOnly: boolean,
): Scope[] {
  const shown = new Set<number>();
  return scopes.filter((scope) => {
    const isShown =
      scope.row === 0 ||
      (shown.has(scope.parent) && open.has(scope.parent) && (!isInvalidOnly || scope.nInvalid > 0));
    if (isShown) shown.add(scope.row);
    return isShown;
  });
}

export function validFraction(scope: Scope): number | null {
  const checked = scope.nValid + scope.nInvalid;
  return checked ? scope.nValid / checked : null;
}

/** The rows of the table of operations in a scope or below it. */
export function within(
  operations: RowsOf<typeof TABLES.incompatible>,
  data: TableData,
  scope: Scope | undefined,
): TableData {
  if (!scope || scope.row === 0) return data;
  const [pathOf, functionOf] = [operations.text('scope'), operations.text('function')];
  const isAnyFunction =
    scope.parent === 0 && scope.children.length > 0 && !scope.fn && scope.name === '(functions)';
  const prefix = scope.path === scope.fn || isAnyFunction ? '' : scope.path;
  const rows: number[] = [];
  for (let row = 0; row < data.nRows; row++) {
    const [fn, path] = [functionOf(row), pathOf(row)];
    const isInside = isAnyFunction
      ? fn !== ''
      : fn === scope.fn && (!prefix || path === prefix || path.startsWith(`${prefix}/`));
    if (isInside) rows.push(row);
  }
  return {
    nRows: rows.length,
    columns: data.columns.map((column) => ({
      ...column,
      cell: (row: number) => column.cell(rows[row] ?? -1),
    })),
  };
}
