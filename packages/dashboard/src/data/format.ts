import { counted, language, locale, t } from '../language.ts';

/** Makes a formatter at its first use and keeps it: to make one takes a thousand times as long as to use it. */
function kept<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const relative = kept(() => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }));
const dayAndTime = kept(() => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }));
const hoursAndMinutes = kept(() => new Intl.DateTimeFormat(locale, { timeStyle: 'short' }));
const withSeconds = kept(() => new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' }));
const steps: readonly { readonly unit: Intl.RelativeTimeFormatUnit; readonly ms: number }[] = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
];

/** Shows what is not a valid time, as of a damaged file, instead of breaking the page. */
function shown(atMs: number, format: () => Intl.DateTimeFormat): string {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? String(at) : format().format(at);
}

/** "3 minutes ago", "yesterday", "in 2 days". */
export function ago(atMs: number, nowMs = Date.now()): string {
  const distance = atMs - nowMs;
  const step = steps.find(({ ms }) => Math.abs(distance) >= ms);
  return step === undefined ? t('just now') : relative().format(Math.round(distance / step.ms), step.unit);
}

export function isPast(atMs: number): boolean {
  return atMs < Date.now();
}

export function dateTime(atMs: number): string {
  return shown(atMs, dayAndTime);
}

export function minuteTime(atMs: number): string {
  return shown(atMs, hoursAndMinutes);
}

export function clockTime(atMs: number): string {
  return shown(atMs, withSeconds);
}

export function count(value: number): string {
  return value.toLocaleString(locale);
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const power = Math.min(3, Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toLocaleString(locale, { maximumFractionDigits: 1 })} ${['B', 'KiB', 'MiB', 'GiB'][power] ?? 'GiB'}`;
}

/** Seconds as "2 d 3 h", "4 min", "12 s". */
export function duration(seconds: number): string {
  const whole = Math.floor(seconds);
  if (whole < 60) return t('{seconds} s', { seconds: whole });
  if (whole < 3600) return t('{minutes} min', { minutes: Math.floor(whole / 60) });
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (whole < 86_400) return minutes === 0 ? t('{hours} h', { hours }) : t('{hours} h {minutes} min', { hours, minutes });
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 ? t('{days} d', { days }) : t('{days} d {hours} h', { days, hours: hours % 24 });
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return counted(value, count(value), one, many);
}

/** US dollars with significant digits: "$0", "$0.00031", "$0.42", "$1,204". */
export function money(dollars: number): string {
  const size = Math.abs(dollars);
  const digits = size >= 100 || size === 0 ? 0 : size >= 0.01 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(size)));
  return dollars.toLocaleString(locale, {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: size >= 0.01 ? digits : 0,
    maximumFractionDigits: digits,
  });
}

/** "1.2M", "340K", "12" in all regions of English: British "1m" tokens would be read as something else. */
export function shortCount(value: number): string {
  return value.toLocaleString(language === 'en' ? 'en' : locale, { notation: 'compact', maximumFractionDigits: 1 });
}

/** A share from 0 to 1 as "42 %"; nearly 0 and nearly 1 are not rounded to 0 % and 100 %. */
export function percent(share: number): string {
  const rounded = Math.round(share * 100);
  if (rounded === 0 && share > 0) return '< 1 %';
  if (rounded === 100 && share < 1) return '> 99 %';
  return `${rounded} %`;
}
