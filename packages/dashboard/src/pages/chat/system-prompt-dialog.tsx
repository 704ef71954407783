import { t, tx } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Failure, Skeleton } from '../../ui/parts.tsx';
import { revealedText } from '../../ui/revealed.ts';

/** What the model of a conversation with the agent gets before its messages. */
export function SystemPromptDialog({
  agentId,
  name,
  onClose,
}: {
  readonly agentId: string;
  /** What the agent is shown as. */
  readonly name: string;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['agent.getPrompt', agentId], (signal) => client.call('agent.getPrompt', { agentId }, { signal }));
  const text = data?.parts.map((part) => part.text).join('\n\n') ?? '';
  return (
    <Dialog title={t('System prompt of {name}', { name })} wide onClose={onClose}>
      <div className="dialog-body">
        {error !== undefined && <Failure error={error} onRetry={reload} />}
        {data === undefined && error === undefined && <Skeleton lines={8} />}
        {data !== undefined && (
          <>
            <p className="hint">
              {tx('{reduce} tokens, before every conversation. {link}', {
                reduce: count(data.parts.reduce((sum, { tokens }) => sum + tokens, 0)),
                link: (
                  <PageLink to={`/agents/${encodeURIComponent(agentId)}`} onFollow={onClose}>
                    {t('Change the agent')}
                  </PageLink>
                ),
              })}
            </p>
            <pre className="raw-text system-prompt" tabIndex={0} role="region" aria-label={t('System prompt')}>
              {revealedText(text)}
            </pre>
            <details>
              <summary className="hint">{plural(data.tools.length, 'tool')}</summary>
              <p className="mono hint">{data.tools.join(', ')}</p>
            </details>
          </>
        )}
      </div>
      <footer>{text !== '' && <CopyButton text={text} label={t('Copy')} />}</footer>
    </Dialog>
  );
}
