import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { parseJson } from '../../../kernel/json.ts';

const Content = z.strictObject({ gatehouse: z.literal(1), summary: z.string() });

/** Encodes the content of a compaction item. It is not secret: anybody who has it may read it, and it is fenced like any caller input. */
export function encodeCompaction(summary: string): string {
  return Buffer.from(JSON.stringify({ gatehouse: 1, summary } satisfies z.output<typeof Content>), 'utf8').toString('base64url');
}

/** Returns the summary in an item, as a text of the conversation; fails for items of other servers, which only those can read. */
export function decodeCompaction(content: string, param: string): string {
  try {
    const { summary } = Content.parse(parseJson(Buffer.from(content, 'base64url').toString('utf8')));
    return `Summary of the earlier conversation:\n${summary}`;
  } catch (cause) {
    throw new AppError('invalid_params', `${param}: expected the content of a compaction that this gateway made`, { param, cause });
  }
}
