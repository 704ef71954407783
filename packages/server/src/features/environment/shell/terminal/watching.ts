import type { Terminal } from '../api.ts';
import type { ScreenRow, ScreenRun } from './screen-thread.ts';
import type { TerminalSession } from './session.ts';

/** Wraps a session for people: what they see has no secrets, and what they type is trusted. */
export function createWatched(session: TerminalSession, hideSecrets: (text: string) => string): Terminal {
  return {
    async screen({ after, waitMs, signal }) {
      using _use = session.use();
      if (after !== undefined && waitMs > 0) await session.untilChanged(after, waitMs, signal);
      const { version, size } = session;
      if (after === version) return { version, ...size, cursor: null };
      const { rows, cursor } = await session.rows();
      return { version, ...size, cursor: cursor ?? null, lines: hideInRows(rows, hideSecrets) };
    },
    assertKeys: (keys) => session.assertKeys(keys),
    type: (text) => session.type(text.replaceAll(/\r?\n/g, '\r'), { tainted: false }),
    press: (keys) => session.press(keys, { tainted: false }),
  };
}

/** Hides secrets also where the terminal wrapped them. Rows in which one was found lose their styles. */
export function hideInRows(rows: readonly ScreenRow[], hideSecrets: (text: string) => string): ScreenRun[][] {
  const lines: ScreenRun[][] = [];
  for (let at = 0; at < rows.length;) {
    let end = at + 1;
    while (rows[end]?.isWrapped === true) end += 1;
    const group = rows.slice(at, end);
    const text = group.map(textOf).join('');
    const hidden = hideSecrets(text);
    if (hidden === text) lines.push(...group.map(({ runs }) => [...runs]));
    else lines.push(...group.map((_, index) => (index === 0 ? [{ text: hidden }] : [])));
    at = end;
  }
  return lines;
}

const textOf = ({ runs }: ScreenRow): string => runs.map(({ text }) => text).join('');
