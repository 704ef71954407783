import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import { memoryTypes } from './find-memories.ts';

/** Stores a memory that all users of an agent share. */
export function StoreDialog({
  agentId,
  onClose,
  onDone,
}: {
  readonly agentId: string;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [content, setContent] = useState('');
  const [tags, setTags] = useState('');
  const [memoryType, setMemoryType] = useState<(typeof memoryTypes)[number]>('semantic');
  const [external, setExternal] = useState(false);
  const [pinned, setPinned] = useState(false);
  const { busy, error, run } = useAction();
  const store = async (): Promise<void> => {
    const stored = await client.call('memory.store', {
      agentId,
      content,
      memoryType,
      trustLevel: external ? 'external' : 'learned',
      pinned,
      tags: tags
        .split(',')
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ''),
    });
    onDone(stored.tainted ? t('Stored as external: the content looks like a prompt injection.') : t('Stored.'));
    onClose();
  };
  return (
    <Dialog title={t('Store a memory for {agentId}', { agentId })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(store);
        }}
      >
        <div className="dialog-body">
          <Field label={t('Content')} hint={t("Shared with everyone who uses this agent. Don't store secrets here.")}>
            {(id, hint) => (
              <textarea id={id} aria-describedby={hint} rows={5} required value={content} onChange={(event) => setContent(event.target.value)} />
            )}
          </Field>
          <Field label={t('Type')}>
            {(id) => (
              <select
                id={id}
                value={memoryType}
                onChange={({ target: { value } }) => setMemoryType(memoryTypes.find((one) => one === value) ?? 'semantic')}
              >
                {memoryTypes.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label={t('Tags')} hint={t('Separated by commas.')}>
            {(id, hint) => <input id={id} aria-describedby={hint} value={tags} onChange={(event) => setTags(event.target.value)} />}
          </Field>
          <label className="check">
            <input type="checkbox" checked={external} onChange={() => setExternal(!external)} />
            {t('From an external source, not trusted')}
          </label>
          <label className="check">
            <input type="checkbox" checked={pinned} onChange={() => setPinned(!pinned)} />
            {t("Pin: keep it even if it isn't used")}
          </label>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy || content.trim() === ''}>
            {busy ? t('Storing…') : t('Store')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
