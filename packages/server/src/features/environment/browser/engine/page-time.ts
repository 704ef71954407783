import { AppError } from '../../../../kernel/app-error.ts';
import { systemClock } from '../../../../kernel/clock.ts';

/** Rejects with `timeout` when the page does not answer in time. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = systemClock.after(ms, () => late.reject(new AppError('timeout', `The page did not answer within ${ms} ms`)));
  work.catch(() => {});
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    cancel();
  }
}

/** The first sentence of an error of Playwright, without its log and colors. */
export function sentenceOf(error: unknown): string {
  if (error instanceof AppError) return error.message;
  const text = error instanceof Error ? error.message : String(error);
  const [line = ''] = text.replaceAll(/\u001b\[[\d;]*m/g, '').split('\n');
  return line.replace(/^[\w.]+: /, '').slice(0, 500);
}
