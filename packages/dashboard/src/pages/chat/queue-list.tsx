import { t } from '../../language.ts';
import type { QueuedMessage } from '../../data/chat-thread.ts';
import { describeError } from '../../data/errors.ts';
import { plural } from '../../data/format.ts';
import { Button, IconButton } from '../../ui/parts.tsx';

/** Lists the messages that are sent after the running answer, or passed to it. */
export function QueueList({
  queue,
  running,
  onSendNow,
  onGive,
  onRemove,
}: {
  readonly queue: readonly QueuedMessage[];
  readonly running: boolean;
  readonly onSendNow: (key: string) => void;
  /** Passes the message to the running turn. */
  readonly onGive: (key: string) => void;
  readonly onRemove: (message: QueuedMessage) => void;
}) {
  return (
    <ul className="queue" aria-label={t('Queued messages')}>
      {queue.map((message) => (
        <li key={message.key}>
          <span className="queue-text" dir="auto">
            {message.text}
          </span>
          {message.attachments.length > 0 && <span className="hint">{plural(message.attachments.length, 'file')}</span>}
          {message.giving === true && (
            <span className="hint" role="status">
              {t('Waits for the next step')}
            </span>
          )}
          {message.refused !== undefined && (
            <span className="hint" role="alert">
              {describeError(message.refused).message}
            </span>
          )}
          {running && message.giving !== true && message.attachments.length === 0 && (
            <Button small look="quiet" icon="up" onClick={() => onGive(message.key)}>
              {t('Steer')}
            </Button>
          )}
          <Button small look="quiet" icon="send" onClick={() => onSendNow(message.key)}>
            {running ? t('Stop and send now') : t('Send')}
          </Button>
          <IconButton icon="close" label={t('Remove {message}', { message: message.text.slice(0, 40) })} onClick={() => onRemove(message)} />
        </li>
      ))}
    </ul>
  );
}
