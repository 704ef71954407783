import type { BrowserAct } from '@gatehouse/contract';
import type { Locator, Page } from 'playwright-core';
import { AppError } from '../../../../kernel/app-error.ts';
import { systemClock } from '../../../../kernel/clock.ts';
import { sleep } from '../../../../kernel/timers.ts';
import { sentenceOf, within } from './page-time.ts';
import type { Step } from './protocol.ts';
import type { Tab } from './tab.ts';

const stepMs = 8_000;
const waitMs = 20_000;
const slowKeyMs = 75;
const maxValueChars = 30_000;

type Of<K extends BrowserAct['kind']> = Extract<BrowserAct, { kind: K }>;

export const referenceOf = (ref: string): string => ref.replace(/^(?:@|ref=)/, '');

/** Does a step in a tab. Fails with a sentence for the model. */
export async function doStep({ page }: Tab, { request, secret, files }: Step): Promise<{ readonly value?: string }> {
  const limit = 'timeoutMs' in request ? (request.timeoutMs ?? (request.kind === 'wait' ? waitMs : stepMs)) : stepMs;
  const timeout = { timeout: limit };
  const at = (ref: string) => page.locator(`aria-ref=${referenceOf(ref)}`);
  try {
    switch (request.kind) {
      case 'click': {
        const { ref, button, modifiers, doubleClick } = request;
        const options = { ...timeout, ...(button !== undefined && { button }), ...(modifiers !== undefined && { modifiers }) };
        await (doubleClick === true ? at(ref).dblclick(options) : at(ref).click(options));
        return {};
      }
      case 'type':
        await type(page, at(request.ref), request, secret, limit);
        return {};
      case 'press':
        if (request.ref !== undefined) await at(request.ref).focus(timeout);
        await within(limit, page.keyboard.press(request.key, { delay: request.delayMs ?? 0 }));
        return {};
      case 'hover':
        await at(request.ref).hover(timeout);
        return {};
      case 'drag':
        await at(request.startRef).dragTo(at(request.endRef), timeout);
        return {};
      case 'select':
        await at(request.ref).selectOption([...request.values], timeout);
        return {};
      case 'fill':
        for (const field of request.fields) await fill(at(field.ref), field, timeout);
        return {};
      case 'scroll':
        if (request.ref !== undefined) await at(request.ref).scrollIntoViewIfNeeded(timeout);
        if (request.dx !== undefined || request.dy !== undefined) await within(limit, page.mouse.wheel(request.dx ?? 0, request.dy ?? 0));
        return {};
      case 'resize':
        await within(limit, page.setViewportSize({ width: request.width, height: request.height }));
        return {};
      case 'wait':
        await wait(page, request, limit);
        return {};
      case 'evaluate':
        return { value: await evaluate(page, request.ref === undefined ? undefined : at(request.ref), request.expression, limit) };
      case 'upload':
        await upload(page, at(request.ref), files ?? [], limit);
        return {};
      case 'back':
      case 'forward':
      case 'reload': {
        const options = { ...timeout, waitUntil: 'domcontentloaded' as const };
        await (request.kind === 'back' ? page.goBack(options) : request.kind === 'forward' ? page.goForward(options) : page.reload(options));
        return {};
      }
      case 'close':
      case 'dialog':
        throw new TypeError('a step of the driver');
    }
  } catch (error) {
    throw stepError(error, request, limit);
  }
}

async function type(page: Page, field: Locator, request: Of<'type'>, secret: Step['secret'], limit: number): Promise<void> {
  if (secret !== undefined) {
    const element = await field.elementHandle({ timeout: limit });
    const frame = await element?.ownerFrame();
    const origin = URL.parse(frame?.url() ?? '')?.origin ?? 'null';
    if (!secret.origins.includes(origin))
      throw new AppError(
        'denied',
        `This secret may not be typed at ${origin}: browser.secrets names ${secret.origins.join(', ') || 'no origin'} for it`,
      );
    // Covered in pictures, whatever kind of field it is.
    await field.evaluate(inPage(`(field) => field.style?.setProperty('-webkit-text-security', 'disc', 'important')`));
  }
  const text = secret?.value ?? request.text ?? '';
  if (request.slowly === true) {
    await field.fill('', { timeout: limit });
    await field.pressSequentially(text, { delay: slowKeyMs, timeout: limit + text.length * slowKeyMs });
  } else await field.fill(text, { timeout: limit });
  if (request.submit === true) await field.press('Enter', { timeout: limit });
}

async function fill(field: Locator, { type: kind, value }: Of<'fill'>['fields'][number], timeout: { readonly timeout: number }): Promise<void> {
  if (kind === 'checkbox' || kind === 'radio') await field.setChecked(value === true || value === 'true', timeout);
  else if (kind === 'select') await field.selectOption(String(value), timeout);
  else await field.fill(String(value), timeout);
}

async function wait(page: Page, { timeMs, text, textGone, selector, url, loadState }: Of<'wait'>, limit: number): Promise<void> {
  const until = systemClock.monotonic() + limit;
  const left = () => ({ timeout: Math.max(1, until - systemClock.monotonic()) });
  if (timeMs !== undefined) await sleep(systemClock, timeMs);
  if (text !== undefined)
    await page
      .getByText(text)
      .first()
      .waitFor({ state: 'visible', ...left() });
  if (textGone !== undefined)
    await page
      .getByText(textGone)
      .first()
      .waitFor({ state: 'hidden', ...left() });
  if (selector !== undefined)
    await page
      .locator(selector)
      .first()
      .waitFor({ state: 'visible', ...left() });
  if (url !== undefined) await page.waitForURL((address) => address.href.includes(url), { waitUntil: 'commit', ...left() });
  if (loadState !== undefined) await page.waitForLoadState(loadState, left());
}

async function evaluate(page: Page, element: Locator | undefined, expression: string, limit: number): Promise<string> {
  const value: unknown = await within(
    limit,
    element === undefined ? page.evaluate(expression) : element.evaluate(inPage(expression), undefined, { timeout: limit }),
  );
  return (JSON.stringify(value) ?? 'undefined').slice(0, maxValueChars);
}

/** Playwright calls with the element what is a function, by its text: one that is made of a text works on pages that forbid `eval`. */
export function inPage(text: string): () => unknown {
  return Object.assign(() => undefined, { toString: () => text });
}

async function upload(page: Page, field: Locator, files: NonNullable<Step['files']>, limit: number): Promise<void> {
  const payload = files.map(({ name, mimeType, bytes }) => ({ name, mimeType, buffer: Buffer.from(bytes) }));
  const isField: unknown = await field.evaluate(inPage(`(field) => field.type === 'file'`), undefined, { timeout: limit });
  if (isField === true) return field.setInputFiles(payload, { timeout: limit });
  const [chooser] = await Promise.all([page.waitForEvent('filechooser', { timeout: limit }), field.click({ timeout: limit })]);
  await chooser.setFiles(payload, { timeout: limit });
}

function stepError(error: unknown, request: BrowserAct, limit: number): AppError {
  if (error instanceof AppError) return error;
  const text = error instanceof Error ? error.message : '';
  const ref = 'ref' in request ? request.ref : undefined;
  if (/aria-ref|Frame was detached|Execution context was destroyed/.test(text) && /not found|detached|destroyed/i.test(text))
    return new AppError('precondition_failed', `There is no ${referenceOf(ref ?? 'such element')} in the page any more: take a new snapshot`);
  if (/Timeout [\d.]+ms exceeded/.test(text)) {
    const covered = /<[^>]*> (?:from .* )?intercepts pointer events/.exec(text)?.[0].slice(0, 200);
    const why =
      covered ??
      (/waiting for locator/.test(text) && !/locator resolved/.test(text)
        ? 'the element is gone: take a new snapshot'
        : 'the element is not visible, enabled or stable');
    return new AppError('timeout', `Not done within ${limit} ms: ${why}`);
  }
  return new AppError('precondition_failed', sentenceOf(error));
}
