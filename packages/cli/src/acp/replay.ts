import type { Client } from '@gatehouse/client';

const pageLength = 200;

/** Sends the messages of a conversation as the updates with which they arrived. */
export async function replay(client: Client, conversationRef: string, update: (update: object) => void): Promise<void> {
  for (let offset = 0; ;) {
    const { messages, hasMore } = await client.call('session.history', { conversationRef, limit: pageLength, offset });
    for (const { role, content, toolCalls = [], toolCallId } of messages) {
      const text = { type: 'text', text: content };
      if (role === 'user') update({ sessionUpdate: 'user_message_chunk', content: text });
      if (role === 'assistant' && content !== '') update({ sessionUpdate: 'agent_message_chunk', content: text });
      for (const call of toolCalls)
        update({ sessionUpdate: 'tool_call', toolCallId: call.id, title: call.name, status: 'completed', rawInput: parsed(call.arguments) });
      if (role === 'tool' && toolCallId !== undefined)
        update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content: [{ type: 'content', content: text }] });
    }
    offset += messages.length;
    if (!hasMore || messages.length === 0) return;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
