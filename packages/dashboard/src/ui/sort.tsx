import { useMemo, useState } from 'react';

type SortValue = string | number | null;

export interface SortState<Key extends string> {
  readonly by: Key;
  readonly descending: boolean;
}

export interface Sorting<Row, Key extends string> {
  readonly rows: readonly Row[];
  readonly state: SortState<Key> | undefined;
  readonly sortBy: (key: Key) => void;
}

/** Sorts the rows of a table by the column that the user chose; in their given order before. A second click turns the order round. */
export function useSorting<Row, Key extends string>(
  rows: readonly Row[],
  valueOf: (row: Row, key: Key) => SortValue,
  { initial, descendingFirst }: { readonly initial?: SortState<NoInfer<Key>>; readonly descendingFirst?: (key: NoInfer<Key>) => boolean } = {},
): Sorting<Row, Key> {
  const [state, setState] = useState<SortState<Key> | undefined>(initial);
  const sorted = useMemo(
    () => (state === undefined ? rows : sortRows(rows, (row) => valueOf(row, state.by), state.descending)),
    [rows, state, valueOf],
  );
  const first = (key: Key) => descendingFirst?.(key) ?? false;
  return {
    rows: sorted,
    state,
    sortBy: (by) => setState(state?.by === by ? { by, descending: !state.descending } : { by, descending: first(by) }),
  };
}

/** Unknown values are always last. */
export function sortRows<Row>(rows: readonly Row[], valueOf: (row: Row) => SortValue, descending: boolean): Row[] {
  return rows.toSorted((a, b) => {
    const [left, right] = [valueOf(a), valueOf(b)];
    if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
    const order =
      typeof left === 'number' && typeof right === 'number' ? left - right : String(left).localeCompare(String(right), undefined, { numeric: true });
    return descending ? -order : order;
  });
}

/** The heading of a column by which a table can be sorted. */
export function SortHeading<Row, Key extends string>({
  sorting: { state, sortBy },
  by,
  align,
  children,
}: {
  readonly sorting: Sorting<Row, Key>;
  readonly by: Key;
  readonly align?: 'right';
  readonly children: string;
}) {
  const order = state?.by === by ? (state.descending ? 'descending' : 'ascending') : undefined;
  return (
    <th scope="col" role="columnheader" aria-sort={order ?? 'none'} data-align={align}>
      <button type="button" className="sort-heading" onClick={() => sortBy(by)}>
        {children}
        <span aria-hidden="true" className="sort-mark">
          {order === 'descending' ? '↓' : order === 'ascending' ? '↑' : ''}
        </span>
      </button>
    </th>
  );
}
