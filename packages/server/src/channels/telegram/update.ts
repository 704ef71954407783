import * as z from 'zod';

const id = z.int();
const text = z.string();

const User = z.object({ id, is_bot: z.boolean().default(false), first_name: text, last_name: text.optional(), username: text.optional() });
export type User = z.output<typeof User>;

const Chat = z.object({ id, type: text, title: text.optional() });

const Entity = z.object({ type: text, offset: z.int().min(0), length: z.int().min(0), user: User.optional() });
export type Entity = z.output<typeof Entity>;

const File = z.object({
  file_id: text.max(1_024),
  file_name: text.optional(),
  mime_type: text.optional(),
  file_size: z.int().min(0).optional(),
});
export type File = z.output<typeof File>;

/** The parts of a message that we read; Telegram adds others all the time. */
const Message = z.object({
  message_id: id,
  message_thread_id: id.optional(),
  is_topic_message: z.boolean().optional(),
  date: z.int(),
  edit_date: z.int().optional(),
  chat: Chat,
  from: User.optional(),
  sender_chat: Chat.optional(),
  author_signature: text.optional(),
  forward_origin: z.unknown().optional(),
  via_bot: z.unknown().optional(),
  text: text.optional(),
  entities: z.array(Entity).optional(),
  caption: text.optional(),
  caption_entities: z.array(Entity).optional(),
  reply_to_message: z.object({ from: User.optional(), forum_topic_created: z.unknown().optional() }).optional(),
  photo: z.array(File.extend({ width: z.int(), height: z.int() })).optional(),
  document: File.optional(),
  voice: File.optional(),
  audio: File.optional(),
  video: File.optional(),
  video_note: File.optional(),
  animation: File.optional(),
  sticker: File.extend({ emoji: text.optional(), is_animated: z.boolean().optional(), is_video: z.boolean().optional() }).optional(),
  location: z.object({ latitude: z.number(), longitude: z.number() }).optional(),
  contact: z.object({ phone_number: text, first_name: text, last_name: text.optional() }).optional(),
});
export type Message = z.output<typeof Message>;

const Press = z.object({
  id: text,
  from: User,
  /** Absent, or without its text, when it is old. */
  message: z.object({ message_id: id, chat: Chat, message_thread_id: id.optional(), is_topic_message: z.boolean().optional() }).optional(),
  data: text.optional(),
});
export type Press = z.output<typeof Press>;

const Update = z.object({ message: Message.optional(), edited_message: Message.optional(), callback_query: Press.optional() });
export type Update = z.output<typeof Update>;

const Numbered = z.object({ update_id: z.int().min(0) });

/** Returns the number of an update, which confirms it to Telegram once it is stored; undefined when there is none. */
export const numberOf = (update: unknown): number | undefined => Numbered.safeParse(update).data?.update_id;

/** Returns the update; undefined when it cannot be read. One of an unknown kind is empty. */
export const parseUpdate = (update: unknown): Update | undefined => Update.safeParse(update).data;
