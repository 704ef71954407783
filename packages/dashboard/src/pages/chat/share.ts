import type { Result } from '@gatehouse/contract';

type Whole = Result<'session.export'>;

const people: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant' };

interface Said {
  readonly who: string;
  readonly at: string;
  readonly text: string;
  readonly files: readonly string[];
}

/** Returns what people and the agent said, without tool calls and their results. */
function saidIn({ messages }: Whole): readonly Said[] {
  return messages.flatMap(({ role, content, timestamp, attachments = [] }) => {
    const who = people[role];
    if (who === undefined || (content.trim() === '' && attachments.length === 0)) return [];
    const at = `${new Date(timestamp).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
    return [{ who, at, text: content, files: attachments.map(({ fileName, mediaId }) => fileName ?? mediaId) }];
  });
}

/** Returns a conversation as Markdown; answers are Markdown already. */
export function toMarkdown(whole: Whole, title: string): string {
  const parts = saidIn(whole).map(({ who, at, text, files }) =>
    [`## ${who}`, `_${at}_`, text.trim(), ...files.map((file) => `Attached: \`${file.replaceAll('`', "'")}\``)].filter(Boolean).join('\n\n'),
  );
  return `${[`# ${title.replaceAll(/\s+/g, ' ')}`, ...parts].join('\n\n')}\n`;
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (found) => escapes[found] ?? found);

/** Returns a conversation as a separate page, without scripts. */
export function toHtml(whole: Whole, title: string): string {
  const parts = saidIn(whole).map(
    ({ who, at, text, files }) =>
      `<section><h2>${who} <small>${at}</small></h2><p dir="auto">${escape(text.trim())}</p>${files.map((file) => `<p>Attached: ${escape(file)}</p>`).join('')}</section>`,
  );
  const style =
    'body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}p{white-space:pre-wrap;overflow-wrap:anywhere}' +
    'section{margin:1.5rem 0}h2{font-size:1rem;margin:0}small{font-weight:400;color:#666}';
  return `<!doctype html>
<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(title)}</title><style>${style}</style></head>
<body><h1>${escape(title)}</h1>
${parts.join('\n')}
</body></html>
`;
}
