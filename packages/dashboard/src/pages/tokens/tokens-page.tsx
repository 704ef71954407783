import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, isPast } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { type MadeToken, SecretDialog } from './secret-dialog.tsx';
import { TokenForm } from './token-form.tsx';

type Token = Result<'tokens.list'>['tokens'][number];

const sourceLabels: Record<Token['source'], string> = { config: 'configured', generated: t('first start'), created: 'stored' };

export function TokensPage() {
  const { admin } = useSession();
  return admin ? <TokenList /> : <AdminOnly title={t('Tokens')} />;
}

function TokenList() {
  const { client } = useSession();
  const list = useLoad(['tokens.list'], (signal) => client.call('tokens.list', {}, { signal }));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<MadeToken>();
  const [asked, setAsked] = useState<{ readonly what: 'rotate' | 'revoke'; readonly token: Token }>();
  const tokens = list.data?.tokens ?? [];

  return (
    <Page
      title={t('Tokens')}
      lead={t('One for each client and user. A secret is shown once; only its digest is stored.')}
      actions={
        <Button icon="plus" look="primary" onClick={() => setMaking(true)}>
          {t('New token')}
        </Button>
      }
    >
      {list.error !== undefined && <Failure error={list.error} onRetry={list.reload} />}
      {list.data === undefined && list.loading && <Skeleton />}
      {list.data !== undefined && tokens.length === 0 && <Empty title={t('No tokens yet')} />}
      {tokens.length > 0 && (
        <ul className="rows">
          {tokens.map((token) => (
            <li key={token.id} className="row">
              <div className="row-main">
                <p className="row-title mono">{token.id}</p>
                <p className="badges">
                  {token.scopes.map((scope) => (
                    <Badge key={scope} tone={scope === '*' || scope === 'admin' ? 'accent' : 'neutral'}>
                      {scope === '*' ? t('everything') : scope}
                    </Badge>
                  ))}
                  {token.person !== undefined && <span className="hint">{tx('of {person}', { person: token.person })}</span>}
                  {token.agents !== undefined && <span className="hint">{tx('only {agents}', { agents: token.agents.join(', ') })}</span>}
                </p>
              </div>
              <div className="row-facts">
                <Badge>{sourceLabels[token.source]}</Badge>
                <Expiry token={token} />
                <span>{token.lastUsedAt === undefined ? t('never used') : t('used {lastUsedAt}', { lastUsedAt: ago(token.lastUsedAt) })}</span>
              </div>
              <div className="row-actions">
                <IconButton icon="retry" label={t('Rotate {id}', { id: token.id })} onClick={() => setAsked({ what: 'rotate', token })} />
                <IconButton icon="trash" label={t('Revoke {id}', { id: token.id })} onClick={() => setAsked({ what: 'revoke', token })} />
              </div>
            </li>
          ))}
        </ul>
      )}
      {making && (
        <TokenForm
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            list.reload();
          }}
        />
      )}
      {made !== undefined && <SecretDialog made={made} onClose={() => setMade(undefined)} />}
      {asked?.what === 'revoke' && (
        <Confirm
          title={t('Revoke {id}?', { id: asked.token.id })}
          action={t('Revoke')}
          onClose={() => setAsked(undefined)}
          run={async () => {
            await client.call('tokens.revoke', { id: asked.token.id });
            list.reload();
          }}
        >
          <p>{t("The token stops working immediately, and its open connections are closed. This can't be undone.")}</p>
        </Confirm>
      )}
      {asked?.what === 'rotate' && (
        <Confirm
          title={t('Rotate the secret of {id}?', { id: asked.token.id })}
          action={t('Rotate')}
          onClose={() => setAsked(undefined)}
          run={async () => {
            const token = await client.call('tokens.rotate', { id: asked.token.id });
            setMade({ id: token.id, secret: token.secret });
            list.reload();
          }}
        >
          <p>{t('The old secret stops working immediately. Clients that use it need the new one.')}</p>
        </Confirm>
      )}
    </Page>
  );
}

function Expiry({ token: { expiresAt } }: { readonly token: Token }) {
  if (expiresAt === undefined) return <span>{t('does not expire')}</span>;
  const over = isPast(expiresAt);
  return (
    <span title={dateTime(expiresAt)} className={over ? 'bad-text' : undefined}>
      {over ? t('expired') : t('expires')} {ago(expiresAt)}
    </span>
  );
}
