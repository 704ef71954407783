import { t } from '../../language.ts';
import type { ReactNode } from 'react';
import { useSession } from '../../data/context.ts';
import { dateTime, percent } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import { derivedText, trustTone } from './labels.ts';

const taintLabels = { clean: t('no suspicious content'), wrapped: t('based on external content'), raw: t('possible prompt injection') } as const;

/** Shows a memory with all its details. */
export function EntryDialog({ id, onOpen, onClose }: { readonly id: string; readonly onOpen: (id: string) => void; readonly onClose: () => void }) {
  const { client } = useSession();
  const found = useLoad(['memory.inspect', id], (signal) => client.call('memory.inspect', { id }, { signal }));
  const entry = found.data?.entry;
  return (
    <Dialog title={t('Memory')} onClose={onClose} wide>
      <div className="dialog-body">
        {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
        {found.data === undefined && found.loading && <Skeleton lines={5} />}
        {found.data !== undefined && entry === undefined && <Notice tone="warn">{t('This memory no longer exists.')}</Notice>}
        {entry !== undefined && (
          <>
            <p className="memory-whole" dir="auto">
              {entry.content}
            </p>
            <p className="badges">
              <Badge>{entry.memoryType}</Badge>
              <Badge tone={trustTone[entry.trustLevel]}>{t('trust: {trustLevel}', { trustLevel: entry.trustLevel })}</Badge>
              <Badge tone={entry.taintLevel === 'clean' ? 'good' : 'warn'}>{taintLabels[entry.taintLevel]}</Badge>
              {entry.pinned && <Badge tone="accent">{t('pinned')}</Badge>}
              {entry.proofCount > 0 && <Badge tone="accent">{derivedText(entry.proofCount)}</Badge>}
            </p>
            <dl className="facts">
              <Fact name={t('Id')}>
                <span className="mono">{entry.id}</span>
              </Fact>
              <Fact name={t('Agent')}>{entry.agentId}</Fact>
              <Fact name={t('Owner')}>{entry.principalId === '*' ? t('everyone') : <span className="mono">{entry.principalId}</span>}</Fact>
              <Fact name={t('Source')}>
                {[entry.source.who, entry.source.channel].filter((part) => part !== undefined).join(', ')}
                {entry.source.conversationRef !== undefined && (
                  <>
                    {', '}
                    <PageLink to={`/conversations/${entry.source.conversationRef}`}>{entry.source.sessionKey ?? t('a conversation')}</PageLink>
                  </>
                )}
              </Fact>
              {entry.tags.length > 0 && <Fact name={t('Tags')}>{entry.tags.join(', ')}</Fact>}
              <Fact name={t('Stored')}>{dateTime(entry.createdAt)}</Fact>
              {entry.updatedAt !== undefined && <Fact name={t('Changed')}>{dateTime(entry.updatedAt)}</Fact>}
              {entry.expiresAt !== undefined && <Fact name={t('Expires')}>{dateTime(entry.expiresAt)}</Fact>}
              {entry.consolidatedAt !== undefined && (
                <Fact name={t('Consolidated')}>
                  {t('into a derived memory, {consolidatedAt}', { consolidatedAt: dateTime(entry.consolidatedAt) })}
                </Fact>
              )}
              {entry.confidence !== undefined && <Fact name={t('Confidence')}>{percent(entry.confidence)}</Fact>}
              {entry.sourceIds !== undefined && entry.sourceIds.length > 0 && (
                <Fact name={t('Derived from')}>
                  <span className="badges">
                    {entry.sourceIds.map((source) => (
                      <button key={source} type="button" className="tag mono" onClick={() => onOpen(source)}>
                        {source.slice(-8)}
                      </button>
                    ))}
                  </span>
                </Fact>
              )}
            </dl>
          </>
        )}
      </div>
    </Dialog>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
