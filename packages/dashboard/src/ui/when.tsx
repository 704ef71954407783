import { ago, dateTime } from '../data/format.ts';

/** A time as it is said ("5 minutes ago"), with the exact one as its title. */
export function When({ atMs, before = '' }: { readonly atMs: number; readonly before?: string }) {
  return (
    <time className="when" dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
      {before}
      {ago(atMs)}
    </time>
  );
}
