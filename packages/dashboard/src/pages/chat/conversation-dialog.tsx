import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { Conversation } from '../../data/conversations.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate } from '../../router.ts';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import { saveBlob, saveJson } from '../../ui/save-json.ts';
import { toHtml, toMarkdown } from './share.ts';

type Shelf = NonNullable<Conversation['shelf']>;

interface ConversationDialogProps {
  readonly conversation: Conversation;
  /** It is the one that the page shows. */
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

/** Renames, tags, pins, archives, shares or deletes a conversation. */
export function ConversationDialog({ conversation, isOpen, onClose }: ConversationDialogProps) {
  const { client, admin, chats } = useSession();
  const { conversationRef, sessionKey, title = '', named = false, shelf = 'list', tags = [], messageCount } = conversation;
  const [name, setName] = useState(title);
  const [labels, setLabels] = useState(tags.join(', '));
  const wanted = [...new Set(labels.split(',').map((tag) => tag.trim().replace(/^#/, '')))].filter((tag) => tag !== '');
  const [isDeleting, setDeleting] = useState(false);
  const action = useAction();
  const update = (change: { readonly title?: string | null; readonly shelf?: Shelf; readonly tags?: string[] }): void =>
    action.run(() => client.call('session.update', { conversationRef, ...change }).then(onClose));
  const share = (type: 'md' | 'html' | 'json'): void =>
    action.run(async () => {
      const whole = await client.call('session.export', { conversationRef });
      const file = `conversation-${conversationRef.slice(3, 15)}.${type}`;
      if (type === 'json') return saveJson(file, whole);
      const text = type === 'md' ? toMarkdown(whole, title || sessionKey) : toHtml(whole, title || sessionKey);
      saveBlob(file, new Blob([text], { type: type === 'md' ? 'text/markdown' : 'text/html' }));
    });

  if (isDeleting)
    return (
      <Confirm
        title={t('Delete this conversation?')}
        action={t('Delete')}
        onClose={() => setDeleting(false)}
        run={async () => {
          await client.call('session.delete', { conversationRef });
          chats.forget(conversationRef);
          if (isOpen) navigate('/chat');
          onClose();
        }}
      >
        <p>
          {tx(
            "{name} with its {messages} and their summaries is removed from the list. An archived copy stays in the gateway's database; memories are kept.",
            { name: <strong>{title || sessionKey}</strong>, messages: plural(messageCount, 'message') },
          )}
        </p>
      </Confirm>
    );
  return (
    <Dialog title={t('Conversation')} onClose={onClose}>
      <form
        className="dialog-body"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== '') update({ title: name });
        }}
      >
        <Field label={t('Title')} hint={named ? undefined : t('The beginning of the first message.')} wide>
          {(id, hint) => (
            <div className="field-row">
              <input id={id} aria-describedby={hint} maxLength={80} value={name} dir="auto" onChange={(event) => setName(event.target.value)} />
              <Button submit disabled={action.busy || name.trim() === '' || name === title}>
                {t('Rename')}
              </Button>
              {named && (
                <Button disabled={action.busy} onClick={() => update({ title: null })}>
                  {t('Reset')}
                </Button>
              )}
            </div>
          )}
        </Field>
        <Field label={t('Tags')} hint={t('Separated by commas, such as: work, travel.')} wide>
          {(id, hint) => (
            <div className="field-row">
              <input id={id} aria-describedby={hint} value={labels} dir="auto" onChange={(event) => setLabels(event.target.value)} />
              <Button disabled={action.busy || wanted.toSorted().join() === tags.toSorted().join()} onClick={() => update({ tags: wanted })}>
                {t('Save tags')}
              </Button>
            </div>
          )}
        </Field>
        <div className="choices">
          <Button disabled={action.busy} onClick={() => update({ shelf: shelf === 'pinned' ? 'list' : 'pinned' })}>
            {shelf === 'pinned' ? t('Unpin') : t('Pin')}
          </Button>
          <Button disabled={action.busy} onClick={() => update({ shelf: shelf === 'archived' ? 'list' : 'archived' })}>
            {shelf === 'archived' ? t('Restore from archive') : t('Archive')}
          </Button>
          <PageLink to={`/conversations/${conversationRef}`} className="button" onFollow={onClose}>
            {t('Details')}
          </PageLink>
        </div>
        <h3>{t('Save as a file')}</h3>
        <div className="choices">
          <Button icon="download" disabled={action.busy} onClick={() => share('md')}>
            {t('Markdown')}
          </Button>
          <Button icon="download" disabled={action.busy} onClick={() => share('html')}>
            {t('HTML')}
          </Button>
          <Button icon="download" disabled={action.busy} onClick={() => share('json')}>
            {t('JSON')}
          </Button>
        </div>
      </form>
      {action.error !== undefined && <Failure error={action.error} />}
      {admin && (
        <footer>
          <Button look="danger" icon="trash" disabled={action.busy} onClick={() => setDeleting(true)}>
            {t('Delete…')}
          </Button>
        </footer>
      )}
    </Dialog>
  );
}
