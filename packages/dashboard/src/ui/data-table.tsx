import { t } from '../language.ts';
import type { ReactNode } from 'react';
import { type SortState, SortHeading, useSorting } from './sort.tsx';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly draw: (row: Row) => ReactNode;
  /** What the column sorts by; without it the column does not sort. Must be the same function in each render. */
  readonly value?: (row: Row) => string | number | null;
  readonly align?: 'right';
  /** Holds sentences, which need space. */
  readonly wide?: true;
  /** Sorts from the highest value first. */
  readonly descendingFirst?: boolean;
}

/**
 * A table whose first column names the row and whose columns sort. On narrow screens each row is a card, with the titles of the columns
 * next to the values. The columns must be the same array in each render.
 */
export function DataTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  actions,
  below,
  initial,
}: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly actions?: (row: Row) => ReactNode;
  /** What is shown below a row, over the whole width. */
  readonly below?: (row: Row) => ReactNode;
  readonly initial?: SortState<string>;
}) {
  const sorting = useSorting<Row, string>(rows, (row, key) => columns.find((column) => column.key === key)?.value?.(row) ?? null, {
    ...(initial !== undefined && { initial }),
    descendingFirst: (key) => columns.find((column) => column.key === key)?.descendingFirst === true,
  });
  return (
    // Roles are written out, because styles that turn rows into cards hide them from screen readers.
    <div className="data-table-box">
      <div className="data-table-sort">
        <select aria-label={t('Sort {label}', { label })} value={sorting.state?.by ?? ''} onChange={({ target }) => sorting.sortBy(target.value)}>
          <option value="" disabled>
            {t('Sort by…')}
          </option>
          {columns.map(({ key, title, value }) =>
            value === undefined ? null : (
              <option key={key} value={key}>
                {title}
              </option>
            ),
          )}
        </select>
      </div>
      <table className="data-table" role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ key, title, value, align }) =>
              value === undefined ? (
                <th key={key} scope="col" role="columnheader" data-align={align}>
                  {title}
                </th>
              ) : (
                <SortHeading key={key} sorting={sorting} by={key} {...(align !== undefined && { align })}>
                  {title}
                </SortHeading>
              ),
            )}
            {actions !== undefined && (
              <th scope="col" role="columnheader">
                <span className="visually-hidden">{t('Actions')}</span>
              </th>
            )}
          </tr>
        </thead>
        {sorting.rows.map((row) => {
          const key = keyOf(row);
          const more = below?.(row);
          return (
            <tbody key={key} role="rowgroup" data-row={key}>
              <tr role="row">
                {columns.map((column, at) => {
                  const cell = { 'data-label': column.title, 'data-align': column.align, 'data-wide': column.wide };
                  return at === 0 ? (
                    <th key={column.key} scope="row" role="rowheader" {...cell}>
                      {column.draw(row)}
                    </th>
                  ) : (
                    <td key={column.key} role="cell" {...cell}>
                      {column.draw(row)}
                    </td>
                  );
                })}
                {actions !== undefined && (
                  <td role="cell" className="data-table-actions">
                    <div className="actions">{actions(row)}</div>
                  </td>
                )}
              </tr>
              {more !== undefined && more !== null && (
                <tr role="row" className="data-table-below">
                  <td role="cell" colSpan={columns.length + (actions === undefined ? 0 : 1)}>
                    {more}
                  </td>
                </tr>
              )}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}
