import { t } from '../../language.ts';
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

interface ChartProps {
  /** Names the measure. */
  readonly caption: string;
  readonly series: readonly string[];
  readonly columns: readonly Column[];
  /** Formats a value with its unit. */
  readonly format: (value: number) => string;
}

/** Positions of values and columns, in pixels. */
interface Plot {
  readonly yOf: (value: number) => number;
  /** Width of a column with the gap next to it, and without. */
  readonly step: number;
  readonly bar: number;
  /** Every how many columns a label fits. */
  readonly labelEvery: number;
}

/** Draws columns over time, stacked when there are several series, with axes, a legend and the same numbers as a table. */
export function ColumnChart({
  axis,
  ...props
}: ChartProps & {
  /** Axis marks: measured values need steps below one, which `format` may round away. */
  readonly axis?: { readonly format: (value: number) => string; readonly leastStep: number };
}) {
  const { caption, series, columns, format } = props;
  const marks = axis ?? { format, leastStep: 1 };
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { ticks, top } = scaleFor(Math.max(0, ...columns.map(({ values }) => sumOf(values))), marks.leastStep);
  const room = { width: width - left - 4, height: height - above - below };
  const step = room.width / Math.max(1, columns.length);
  const plot: Plot = {
    yOf: (value) => above + room.height * (1 - value / top),
    step,
    bar: Math.max(1, Math.min(46, step * 0.72)),
    labelEvery: labelEvery(columns.length, room.width, labelPx),
  };
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{caption}</span>
        {series.length > 1 && <Legend series={series} />}
      </figcaption>
      {/* The table below has the same content as text. */}
      <div ref={box} className="chart-box">
        <svg width={width} height={height} aria-hidden="true">
          {ticks.map((tick) => (
            <g key={tick}>
              <line className="grid-line" x1={left} x2={width} y1={plot.yOf(tick)} y2={plot.yOf(tick)} />
              <text className="axis-text" x={left - 8} y={plot.yOf(tick) + 4} textAnchor="end">
                {marks.format(tick)}
              </text>
            </g>
          ))}
          {columns.map((column, at) => (
            <StackedColumn key={column.key} column={column} at={at} plot={plot} {...props} />
          ))}
        </svg>
      </div>
      <ChartTable {...props} />
    </figure>
  );
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function Legend({ series }: Pick<ChartProps, 'series'>) {
  return (
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
  );
}

function StackedColumn({
  column,
  at,
  plot,
  series,
  format,
}: Pick<ChartProps, 'series' | 'format'> & { readonly column: Column; readonly at: number; readonly plot: Plot }) {
  const x = left + plot.step * at + (plot.step - plot.bar) / 2;
  return (
    <g>
      {column.values.map((value, index) => {
        const from = sumOf(column.values.slice(0, index));
        const base = from + value;
        const tall = plot.yOf(from) - plot.yOf(base);
        return (
          value > 0 && (
            // Keeps small values visible next to large ones.
            <rect
              key={series[index] ?? index}
              className={`series-${Math.min(index, maxSeries - 1)}`}
              x={x}
              y={Math.min(plot.yOf(base), plot.yOf(from) - 1)}
              width={plot.bar}
              height={Math.max(1, tall)}
            >
              <title>{`${column.name}${series.length > 1 ? `, ${series[index] ?? ''}` : ''}: ${format(value)}`}</title>
            </rect>
          )
        );
      })}
      {at % plot.labelEvery === 0 && (
        <text className="axis-text" x={left + plot.step * (at + 0.5)} y={height - 6} textAnchor="middle">
          {column.label}
        </text>
      )}
    </g>
  );
}

function ChartTable({ caption, series, columns, format }: ChartProps) {
  return (
    <details className="chart-table">
      <summary>{t('As a table')}</summary>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={t('{caption}, as a table', { caption })}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t('Day')}</th>
              {series.map((name) => (
                <th key={name} scope="col" data-align="right">
                  {name}
                </th>
              ))}
              {series.length > 1 && (
                <th scope="col" data-align="right">
                  {t('Total')}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {columns.map((column) => (
              <tr key={column.key}>
                <th scope="row">{column.name}</th>
                {series.map((name, index) => (
                  <td key={name} data-align="right">
                    {format(column.values[index] ?? 0)}
                  </td>
                ))}
                {series.length > 1 && <td data-align="right">{format(sumOf(column.values))}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
