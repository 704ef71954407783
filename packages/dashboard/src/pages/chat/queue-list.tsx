import type { QueuedMessage } from '../../data/chat-thread.ts';
import { plural } from '../../data/format.ts';
import { Button, IconButton } from '../../ui/parts.tsx';

/** Lists the messages that are sent after the running answer. */
export function QueueList({
  queue,
  running,
  onSendNow,
  onRemove,
}: {
  readonly queue: readonly QueuedMessage[];
  readonly running: boolean;
  readonly onSendNow: (key: string) => void;
  readonly onRemove: (message: QueuedMessage) => void;
}) {
  if (queue.length === 0) return null;
  return (
    <ul className="queue" aria-label="Queued messages">
      {queue.map((message) => (
        <li key={message.key}>
          <span className="queue-text" dir="auto">
            {message.text}
          </span>
          {message.attachments.length > 0 && <span className="hint">{plural(message.attachments.length, 'file')}</span>}
          <Button small look="quiet" icon="send" onClick={() => onSendNow(message.key)}>
            {running ? 'Stop and send now' : 'Send'}
          </Button>
          <IconButton icon="close" label={`Remove ${message.text.slice(0, 40)}`} onClick={() => onRemove(message)} />
        </li>
      ))}
    </ul>
  );
}
