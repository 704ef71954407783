import { useRef } from 'react';
import { labelEvery, scaleFor } from './scale.ts';
import { useWidth } from './use-width.ts';

export interface Column {
  readonly key: string;
  /** Label below the axis. */
  readonly label: string;
  /** Full name for tooltips and the table. */
  readonly name: string;
  /** One value for each series. */
  readonly values: readonly number[];
}

const height = 220;
const above = 10;
const below = 24;
const left = 64;
const labelPx = 58;

/** Number of series colours; further series share the last one. */
export const maxSeries = 6;

/**
 * Draws columns over time, stacked when there are several series, with axes, a legend and the same numbers as a table.
 * `caption` names the measure, `format` formats a value with its unit.
 */
export function ColumnChart({
  caption,
  series,
  columns,
  format,
  axis = { format, leastStep: 1 },
}: {
  readonly caption: string;
  readonly series: readonly string[];
  readonly columns: readonly Column[];
  readonly format: (value: number) => string;
  /** Axis marks: measured values need steps below one, which `format` may round away. */
  readonly axis?: { readonly format: (value: number) => string; readonly leastStep: number };
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const sums = columns.map(({ values }) => values.reduce((sum, value) => sum + value, 0));
  const { ticks, top } = scaleFor(Math.max(0, ...sums), axis.leastStep);
  const room = { width: width - left - 4, height: height - above - below };
  const step = room.width / Math.max(1, columns.length);
  const bar = Math.max(1, Math.min(46, step * 0.72));
  const every = labelEvery(columns.length, room.width, labelPx);
  const yOf = (value: number): number => above + room.height * (1 - value / top);
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{caption}</span>
        {series.length > 1 && (
          <ul className="legend">
            {series.map((name, at) => (
              <li key={name}>
                <svg className={`swatch series-${Math.min(at, maxSeries - 1)}`} viewBox="0 0 10 10" aria-hidden="true">
                  <rect width="10" height="10" rx="2" />
                </svg>
                {name}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      {/* The table below has the same content as text. */}
      <div ref={box} className="chart-box">
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((tick) => (
            <g key={tick}>
              <line className="grid-line" x1={left} x2={width} y1={yOf(tick)} y2={yOf(tick)} />
              <text className="axis-text" x={left - 8} y={yOf(tick) + 4} textAnchor="end">
                {axis.format(tick)}
              </text>
            </g>
          ))}
          {columns.map((column, at) => {
            const x = left + step * at + (step - bar) / 2;
            let base = 0;
            return (
              <g key={column.key}>
                {column.values.map((value, index) => {
                  const from = base;
                  base += value;
                  const tall = yOf(from) - yOf(base);
                  return (
                    value > 0 && (
                      // Keeps small values visible next to large ones.
                      <rect
                        key={series[index] ?? index}
                        className={`series-${Math.min(index, maxSeries - 1)}`}
                        x={x}
                        y={Math.min(yOf(base), yOf(from) - 1)}
                        width={bar}
                        height={Math.max(1, tall)}
                      >
                        <title>{`${column.name}${series.length > 1 ? `, ${series[index] ?? ''}` : ''}: ${format(value)}`}</title>
                      </rect>
                    )
                  );
                })}
                {at % every === 0 && (
                  <text className="axis-text" x={left + step * (at + 0.5)} y={height - 6} textAnchor="middle">
                    {column.label}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <details className="chart-table">
        <summary>As a table</summary>
        <div className="table-scroll" tabIndex={0} role="region" aria-label={`${caption}, as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Day</th>
                {series.map((name) => (
                  <th key={name} scope="col" data-align="right">
                    {name}
                  </th>
                ))}
                {series.length > 1 && (
                  <th scope="col" data-align="right">
                    Total
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {columns.map((column, at) => (
                <tr key={column.key}>
                  <th scope="row">{column.name}</th>
                  {series.map((name, index) => (
                    <td key={name} data-align="right">
                      {format(column.values[index] ?? 0)}
                    </td>
                  ))}
                  {series.length > 1 && <td data-align="right">{format(sums[at] ?? 0)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
