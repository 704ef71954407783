import type { MessageAttachment } from '@gatehouse/contract';
import type { ModelMessage, ToolCall } from '../llm/model.ts';
import type { Thought } from './thought.ts';

/** Content of the column `tool_json` of a stored message. */
export interface ToolColumn {
  readonly toolCalls?: readonly ToolCall[];
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: true;
}

/** Encodes the tool-related part of a message; null for plain text. */
export function encodeToolColumn(message: ModelMessage): string | null {
  if (message.role === 'user' || (message.role === 'assistant' && message.toolCalls === undefined)) return null;
  const column: ToolColumn =
    message.role === 'assistant'
      ? { toolCalls: message.toolCalls ?? [] }
      : { toolCallId: message.toolCallId, toolName: message.toolName, ...(message.isError === true && { isError: true }) };
  return JSON.stringify(column);
}

/** The inverse; the column is only ever written by `encodeToolColumn`. */
export function decodeToolColumn(text: string | null): ToolColumn {
  return text === null ? {} : (JSON.parse(text) as ToolColumn);
}

/** Encodes the column `reasoning_json` of a stored message; null without reasoning. */
export function encodeReasoning(message: ModelMessage): string | null {
  return message.role !== 'assistant' || message.thought === undefined ? null : JSON.stringify(message.thought);
}

/** The inverse; the column is only ever written by `encodeReasoning`. */
export function decodeReasoning(text: string): Thought {
  return JSON.parse(text) as Thought;
}

/** Encodes the column `attachments_json` of a stored message; null when nothing is attached. */
export function encodeAttachments(attachments: readonly MessageAttachment[] | undefined): string | null {
  return attachments === undefined || attachments.length === 0 ? null : JSON.stringify(attachments);
}

/** The inverse; the column is only ever written by `encodeAttachments`. */
export function decodeAttachments(text: string): readonly MessageAttachment[] {
  return JSON.parse(text) as MessageAttachment[];
}

/** Returns a stored row as the model sees it, without its attachments. */
export function toModelMessage(row: {
  readonly role: ModelMessage['role'];
  readonly content: string;
  readonly toolJson: string | null;
}): ModelMessage {
  const { toolCalls, toolCallId = '', toolName = '', isError } = decodeToolColumn(row.toolJson);
  if (row.role === 'user') return { role: 'user', content: row.content };
  if (row.role === 'assistant')
    return toolCalls === undefined ? { role: 'assistant', content: row.content } : { role: 'assistant', content: row.content, toolCalls };
  return { role: 'tool', content: row.content, toolCallId, toolName, ...(isError === true && { isError }) };
}
