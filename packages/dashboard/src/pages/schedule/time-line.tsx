import { t } from '../../language.ts';
import { locale } from '../../language.ts';
import { useRef } from 'react';
import { dateTime } from '../../data/format.ts';
import { useWidth } from '../../ui/charts/use-width.ts';
import type { JobRuns } from './upcoming.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const rowHeight = 22;
const axisHeight = 20;
const markWidth = 5;
/** Minimum distance in pixels between two marks of the axis. */
const labelPx = 74;
const listed = 100;

export const spans = [
  { ms: dayMs, text: t('24 hours') },
  { ms: 7 * dayMs, text: t('7 days') },
] as const;

/** Shows upcoming runs of all jobs on an axis and as a list, in the browser's time zone. */
export function TimeLine({ rows, nowMs, spanMs }: { readonly rows: readonly JobRuns[]; readonly nowMs: number; readonly spanMs: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const xOf = (atMs: number): number => ((atMs - nowMs) / spanMs) * (width - markWidth);
  const ticks = ticksOf(nowMs, spanMs, Math.max(1, Math.floor(width / labelPx)));
  const list = rows.flatMap(({ job, times }) => times.map((atMs) => ({ job, atMs }))).toSorted((a, b) => a.atMs - b.atMs);
  return (
    <figure className="chart time-line">
      <figcaption>
        <span className="chart-title">{t('Next runs')}</span>
      </figcaption>
      {/* The list below has the same content as text. */}
      <div ref={box} className="chart-box" aria-hidden="true">
        {rows.map(({ job, times, moreFromMs }) => (
          <div key={job.id}>
            <p className="time-line-name">
              <span dir="auto">{job.name}</span>
            </p>
            <svg width={width} height={rowHeight}>
              <line className="grid-line" x1={0} x2={width} y1={rowHeight / 2} y2={rowHeight / 2} />
              {ticks.map(({ atMs }) => (
                <line key={atMs} className="grid-line" x1={xOf(atMs)} x2={xOf(atMs)} y1={0} y2={rowHeight} />
              ))}
              {moreFromMs !== undefined && (
                <rect className="time-line-more" x={xOf(moreFromMs)} y={7} width={Math.max(0, width - xOf(moreFromMs))} height={rowHeight - 14} />
              )}
              {times.map((atMs) => (
                <rect key={atMs} className="time-line-mark" x={xOf(atMs)} y={3} width={markWidth} height={rowHeight - 6} rx="2">
                  <title>{`${job.name}: ${dateTime(atMs)}`}</title>
                </rect>
              ))}
            </svg>
          </div>
        ))}
        <svg width={width} height={axisHeight}>
          {ticks.map(({ atMs, label }) => (
            <text
              key={atMs}
              className="axis-text"
              x={xOf(atMs)}
              y={14}
              textAnchor={xOf(atMs) > width - 30 ? 'end' : xOf(atMs) < 30 ? 'start' : 'middle'}
            >
              {label}
            </text>
          ))}
        </svg>
      </div>
      <details className="chart-table">
        <summary>{t('As a list')}</summary>
        <div className="time-line-list" tabIndex={0} role="region" aria-label={t('Next runs, as a list')}>
          <ol aria-label={t('Next runs')}>
            {list.slice(0, listed).map(({ job, atMs }) => (
              <li key={`${job.id} ${atMs}`}>
                <time dateTime={new Date(atMs).toISOString()}>{dateTime(atMs)}</time> <span dir="auto">{job.name}</span>
              </li>
            ))}
          </ol>
        </div>
        {(list.length > listed || rows.some(({ moreFromMs }) => moreFromMs !== undefined)) && (
          <p className="hint">{t('There are more runs in this period.')}</p>
        )}
      </details>
    </figure>
  );
}

interface Tick {
  readonly atMs: number;
  readonly label: string;
}

/** Returns full hours of a day, or midnights of a week, as many as fit. */
function ticksOf(nowMs: number, spanMs: number, most: number): Tick[] {
  const isDay = spanMs <= dayMs;
  const steps = isDay ? [1, 2, 3, 4, 6, 12, 24] : [1, 2, 4, 7];
  const units = isDay ? 24 : spanMs / dayMs;
  const step = steps.find((one) => units / one <= most) ?? units;
  const start = new Date(nowMs);
  start.setHours(0, 0, 0, 0);
  const ticks: Tick[] = [];
  for (let count = 0; ; count += step) {
    const at = new Date(start);
    // Uses the calendar, so that days of 23 or 25 hours keep their midnights.
    if (isDay) at.setHours(count);
    else at.setDate(at.getDate() + count);
    const atMs = at.getTime();
    if (atMs > nowMs + spanMs) return ticks;
    if (atMs >= nowMs)
      ticks.push({
        atMs,
        label: isDay ? at.toLocaleTimeString(locale, { timeStyle: 'short' }) : at.toLocaleDateString(locale, { weekday: 'short', day: 'numeric' }),
      });
  }
}
