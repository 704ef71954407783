import { t } from '../language.ts';
import { ago, clockTime, dateTime } from '../data/format.ts';

/** A time as it is said ("5 minutes ago"), with the exact one as its title. */
export function When({ atMs, before = '' }: { readonly atMs: number; readonly before?: string }) {
  return (
    <time className="when" dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
      {before}
      {ago(atMs)}
    </time>
  );
}

const isWithinDay = (atMs: number): boolean => atMs - Date.now() < 86_400_000;

/** Shows when something is tried again: to the second, because it is often soon. */
export function NextTry({ atMs }: { readonly atMs: number }) {
  return (
    <time className="hint" dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
      {t('Next try at {at}.', { at: isWithinDay(atMs) ? clockTime(atMs) : dateTime(atMs) })}
    </time>
  );
}
