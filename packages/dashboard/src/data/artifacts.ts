import { t } from '../language.ts';
import type { ChatMessage } from './chat-thread.ts';

export type ArtifactKind = 'html' | 'svg' | 'markdown';

/** A page, picture or document that an agent wrote as a code block, with its versions in the order of the conversation. */
export interface Artifact {
  readonly kind: ArtifactKind;
  readonly title: string;
  readonly versions: readonly string[];
}

const kinds: Readonly<Record<string, ArtifactKind>> = { html: 'html', htm: 'html', svg: 'svg', md: 'markdown', markdown: 'markdown' };
const names: Readonly<Record<ArtifactKind, string>> = { html: t('Page'), svg: t('Picture'), markdown: t('Document') };

/** Returns what a code block can be opened as; undefined for code that is only read. */
export function artifactKind(info: string | undefined, text: string): ArtifactKind | undefined {
  const language = /^[\w+#.-]+/.exec((info ?? '').trim())?.[0]?.toLowerCase() ?? '';
  if (language === 'xml') return /^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/i.test(text) ? 'svg' : undefined;
  return Object.hasOwn(kinds, language) ? kinds[language] : undefined;
}

/** Returns the name of a file that a code block has after its language. */
export function namedFile(info: string | undefined): string | undefined {
  return /\s.*?([\w.-]*\w\.[A-Za-z]\w{0,7})["']?$/.exec((info ?? '').trim())?.[1];
}

/** Blocks with the same name, or the same title, are versions of one artifact. */
export function titleOf(info: string | undefined, text: string): string {
  const kind = artifactKind(info, text) ?? 'markdown';
  const inText = kind === 'markdown' ? /^#\s+(.{1,120})$/m.exec(text)?.[1] : /<title[^>]*>\s*([^<]{1,120})/i.exec(text)?.[1];
  return namedFile(info) ?? (inText?.trim() || names[kind]);
}

/** Returns the artifact that a code block belongs to, with all its versions in the answers of a conversation. */
export function artifactOf(info: string | undefined, text: string, messages: readonly Pick<ChatMessage, 'role' | 'text'>[]): Artifact {
  const kind = artifactKind(info, text) ?? 'markdown';
  const title = titleOf(info, text);
  const versions = messages
    .filter(({ role }) => role === 'assistant')
    .flatMap((message) => codeBlocks(message.text))
    .filter((block) => artifactKind(block.info, block.text) === kind && titleOf(block.info, block.text) === title)
    .map((block) => block.text);
  return { kind, title, versions: versions.includes(text) ? versions : [...versions, text] };
}

/** Finds the complete code blocks of a text. */
function codeBlocks(text: string): readonly { readonly info: string; readonly text: string }[] {
  const blocks: { readonly info: string; readonly text: string }[] = [];
  let open: { readonly fence: string; readonly info: string; readonly lines: string[] } | undefined;
  for (const line of text.split('\n')) {
    const [, fence, info = ''] = /^ {0,3}(`{3,}|~{3,})\s*(.*)$/.exec(line) ?? [];
    if (open === undefined) {
      if (fence !== undefined) open = { fence, info: info.trim(), lines: [] };
    } else if (fence !== undefined && info === '' && fence.startsWith(open.fence)) {
      blocks.push({ info: open.info, text: open.lines.join('\n') });
      open = undefined;
    } else open.lines.push(line);
  }
  return blocks;
}
