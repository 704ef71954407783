import type { BrowserContext, CDPSession, Frame, Page } from 'playwright-core';
import { AppError } from '../../../../kernel/app-error.ts';
import { inPage } from './act.ts';
import { within } from './page-time.ts';

/** What is hidden for one picture. */
interface Covered {
  /** Sessions by page, and by each frame with a separate process. */
  readonly sessions: Map<Page | Frame, CDPSession>;
  /** Elements, and texts in fields, that stay hidden whatever they show. */
  readonly hidden: Set<string>;
  readonly undo: (() => Promise<unknown>)[];
}

const maxRounds = 3;
/** Limit of each round and of the end, in milliseconds. */
const roundMs = 3_000;
/** Limit of a frame for drawing what was hidden in it. */
const drawMs = 1_000;
/** Shorter values are not hidden in texts either: they appear by chance. */
const minChars = 8;
const mask = '•';
const textNode = 3;
/** Lines of a snapshot that end with the value of a field. */
const field = /^\s*- '?(?:textbox|searchbox|combobox|spinbutton)\b/;

type Node = { readonly backendNodeId: number; readonly nodeValue: string };

/** These run in the page and know no secret. The element of a text that only the browser may change is the field or control around it. */
const elementOf = `function () { return this.nodeType === 1 ? this : this.getRootNode().host ?? null; }`;
const hideElement = `function (isText) {
  const isField = isText && this.matches('input, textarea') && this.value.length > 0;
  const rules = isField ? [['-webkit-text-security', 'disc']] : [['opacity', '0'], ['transition', 'none']];
  return rules.map(([name, value]) => {
    const before = [name, this.style.getPropertyValue(name), this.style.getPropertyPriority(name)];
    this.style.setProperty(name, value, 'important');
    return before;
  });
}`;
/** What a frame hides is drawn in the first, activated before the second is committed, and the third follows that. */
const drawThrice = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done()))))`;
const showAgain = `function (before) { for (const rule of before) this.style.setProperty(...rule); }`;

/**
 * Hides secrets that were typed in a browser while a picture is drawn, wherever its pages show them. Chromium itself searches: it sees fields,
 * frames and closed shadow roots, and no script of a page learns a value.
 */
export class Cover {
  readonly #context: BrowserContext;
  readonly #values = new Set<string>();
  readonly #short = new Set<string>();
  /** One picture of a page at a time: the end of one would uncover the other. */
  readonly #last = new WeakMap<Page, Promise<unknown>>();

  constructor(context: BrowserContext) {
    this.#context = context;
  }

  add(secret: string): void {
    const value = secret.trim();
    if (value.length < minChars) this.#short.add(secret);
    else
      this.#values
        .add(value)
        .add(encodeURIComponent(value))
        .add(new URLSearchParams([['', value]]).toString().slice(1));
  }

  /** Returns a snapshot without typed values that are too short to be hidden wherever they appear: only their fields hide them. */
  maskFields(snapshot: string): string {
    if (this.#short.size === 0) return snapshot;
    const ends = [...this.#short].flatMap((value) => [`: ${value}`, `: ${JSON.stringify(value)}`]);
    const lines = snapshot.split('\n').map((line) => {
      const end = field.test(line) ? ends.find((each) => line.endsWith(each)) : undefined;
      return end === undefined ? line : `${line.slice(0, -end.length)}: ${mask.repeat(4)}`;
    });
    return lines.join('\n');
  }

  get isNeeded(): boolean {
    return this.#values.size > 0;
  }

  /** Draws with all secrets hidden. Fails with `unavailable` when a page keeps showing them in other elements. */
  async around<T>(page: Page, draw: () => Promise<T>): Promise<T> {
    if (!this.isNeeded) return draw();
    const before = this.#last.get(page);
    const done = Promise.withResolvers<void>();
    this.#last.set(page, done.promise);
    await before;
    const covered: Covered = { sessions: new Map(), hidden: new Set(), undo: [] };
    try {
      for (let round = 0; round < maxRounds; round += 1) {
        await within(roundMs, this.#hide(page, covered));
        const picture = await draw();
        // What appeared meanwhile may be in it.
        if (!(await within(roundMs, this.#hide(page, covered)))) return picture;
      }
      throw new AppError('unavailable', 'The page keeps showing a typed secret in new places: it has no picture');
    } finally {
      await within(roundMs, uncover(covered)).catch(() => {});
      done.resolve();
    }
  }

  /** Hides what is not hidden yet; returns whether there was something. */
  async #hide(page: Page, covered: Covered): Promise<boolean> {
    const { sessions, undo } = covered;
    const before = undo.length;
    const changed: [Frame, CDPSession][] = [];
    for (const target of [page, ...page.frames().filter((frame) => frame.parentFrame() !== null)]) {
      // A frame that shares the process of its page has no separate session: it is searched with the page.
      const session = sessions.get(target) ?? (await this.#context.newCDPSession(target).catch(() => undefined));
      if (session === undefined) continue;
      sessions.set(target, session);
      await session.send('DOM.enable');
      await session.send('DOM.getDocument', { depth: 0 });
      const earlier = undo.length;
      for (const value of this.#values) await hideIn(session, value, [...sessions.keys()].indexOf(target), covered);
      if (undo.length > earlier && 'parentFrame' in target) changed.push([target, session]);
    }
    await Promise.all(changed.map(([frame, session]) => untilDrawn(page, frame, session, covered)));
    return undo.length > before;
  }
}

async function hideIn(session: CDPSession, value: string, place: number, { hidden, undo }: Covered): Promise<void> {
  const { searchId, resultCount } = await session.send('DOM.performSearch', { query: value, includeUserAgentShadowDOM: true });
  if (resultCount === 0) return;
  const { nodeIds } = await session.send('DOM.getSearchResults', { searchId, fromIndex: 0, toIndex: resultCount });
  for (const nodeId of nodeIds) {
    const { node } = await session.send('DOM.describeNode', { nodeId });
    const key = `${place}/${node.backendNodeId}`;
    // The document of a frame is searched itself.
    if (hidden.has(key) || node.nodeName === 'IFRAME') continue;
    const unmask = node.nodeType === textNode ? await maskText(session, nodeId, node, value).catch(() => undefined) : undefined;
    if (unmask === undefined) hidden.add(key);
    undo.push(unmask ?? (await hide(session, nodeId, node.nodeType === textNode)));
  }
}

/** Fails for a text inside a field or control, which only the browser may change. */
async function maskText(session: CDPSession, nodeId: number, { backendNodeId, nodeValue }: Node, value: string): Promise<() => Promise<unknown>> {
  // The search ignores case.
  const masked = nodeValue.replaceAll(new RegExp(RegExp.escape(value), 'giu'), mask.repeat(value.length));
  await session.send('DOM.setNodeValue', { nodeId, value: masked });
  return async () => {
    const { nodeIds } = await session.send('DOM.pushNodesByBackendIdsToFrontend', { backendNodeIds: [backendNodeId] });
    const [now = 0] = nodeIds;
    const { node } = await session.send('DOM.describeNode', { nodeId: now });
    // Unless the page has changed it meanwhile.
    if (node.nodeValue === masked) await session.send('DOM.setNodeValue', { nodeId: now, value: nodeValue });
  };
}

/** A picture of a page has the last image of each frame with a separate process, which must not be one from before. A frame that does not draw is left out. */
async function untilDrawn(page: Page, frame: Frame, session: CDPSession, { undo }: Covered): Promise<void> {
  try {
    await within(drawMs, session.send('Runtime.evaluate', { expression: drawThrice, awaitPromise: true }));
  } catch {
    let outer = frame;
    for (let parent = frame.parentFrame(); parent !== null && parent !== page.mainFrame(); parent = parent.parentFrame()) outer = parent;
    // A frame that is gone shows nothing.
    const element = await outer.frameElement().catch(() => undefined);
    if (element === undefined) return;
    const call = (text: string, value: unknown) => element.evaluate(inPage(`(element, value) => (${text}).call(element, value)`), value);
    const before = await call(hideElement, false);
    undo.push(() => call(showAgain, before));
  }
}

async function hide(session: CDPSession, nodeId: number, isText: boolean): Promise<() => Promise<unknown>> {
  const call = (objectId: string, functionDeclaration: string, value?: unknown) =>
    session.send('Runtime.callFunctionOn', {
      objectId,
      functionDeclaration,
      arguments: [{ value }],
      returnByValue: functionDeclaration !== elementOf,
    });
  const { object } = await session.send('DOM.resolveNode', { nodeId });
  // Found now: the browser replaces such a text when the page changes.
  const element = object.objectId === undefined ? undefined : (await call(object.objectId, elementOf)).result.objectId;
  if (element === undefined) return async () => {};
  const before: unknown = (await call(element, hideElement, isText)).result.value;
  return () => call(element, showAgain, before);
}

/** The last first: an element may have been hidden twice. */
async function uncover({ sessions, undo }: Covered): Promise<void> {
  for (const each of undo.toReversed()) await each().catch(() => {});
  for (const session of sessions.values()) await session.detach().catch(() => {});
}
