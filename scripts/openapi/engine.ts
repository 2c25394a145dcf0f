// A caller in TypeScript, as integration.md has the send loop. It is compiled, not run.
import type { components, paths } from "./capper";

type Filter = paths["/v1/filter"]["post"];
type FilterRequest = Filter["requestBody"]["content"]["application/json"];
type FilterAnswer = Filter["responses"][200]["content"]["application/json"];
type PermitsRequest = components["schemas"]["PermitsRequest"];
type Permits = paths["/v1/permits"]["post"]["responses"][200]["content"]["application/json"];
type UserID = components["schemas"]["UserID"];
type ReleaseRequest = components["schemas"]["ReleaseRequest"];

// Only what the documents call required has to be there.
export const filter: FilterRequest = { message_id: "promo-2026-11-20", channel: "push", user_ids: [7, 42, 99] };
export const preview: FilterRequest = { record: false, users_bitmap: "OjAAAAAAAAA=" };
export const release: ReleaseRequest = { message_id: "promo-2026-11-20", user_ids: [99] };
export const releaseOfAChannel: ReleaseRequest = { ...release, channel: "push" };

export const permits: PermitsRequest = { pacers: ["carrier"], permits: 100 };
export const ahead: PermitsRequest = { ...permits, max_wait: "2s", request_id: "w3-1182", message_id: "promo-7" };
export const slotTimes = (answer: Permits, arrived: number): number[] =>
  answer.slots.flatMap((slot) => Array.from({ length: slot.permits }, (_, k) => arrived + slot.wait_ms + k * (slot.every_ms ?? 0)));

// @ts-expect-error: a wait has a unit
export const unitless: PermitsRequest = { pacers: ["carrier"], permits: 100, max_wait: 2 };
// @ts-expect-error: there is no such field
export const misspelt: FilterRequest = { messageId: "promo", user_ids: [7] };
export const ofUUIDs: FilterRequest = { message_id: "promo", user_ids: ["018f3c4e-7a1b-7c3d-9e5f-0123456789ab"] };
// @ts-expect-error: ids are numbers or strings
export const flags: FilterRequest = { message_id: "promo", user_ids: [true] };
// @ts-expect-error: a release names a message
export const nameless: ReleaseRequest = { user_ids: [7] };
// @ts-expect-error: counts or denials
export const detail: FilterRequest = { message_id: "promo", user_ids: [7], detail: "all" };

export async function sendLoop(url: string, request: FilterRequest, send: (users: UserID[]) => UserID[]): Promise<UserID[]> {
  const response = await fetch(url + "/v1/filter", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request),
  });
  if (!response.ok) {
    const { error }: components["schemas"]["Error"] = await response.json();
    throw new Error(`${error.code}: ${error.message}`);
  }
  const answer: FilterAnswer = await response.json();
  if (!("allowed" in answer)) throw new Error("bitmaps for a request in ids");
  for (const denial of answer.denied ?? []) {
    const until: string | null = denial.retry_at;
    console.log(denial.user_id, denial.limit, until);
  }
  const failed = send(answer.allowed);
  const again: ReleaseRequest = { message_id: request.message_id ?? "", user_ids: failed };
  if (failed.length > 0) await fetch(url + "/v1/release", { method: "POST", body: JSON.stringify(again) });
  return answer.unavailable;
}
