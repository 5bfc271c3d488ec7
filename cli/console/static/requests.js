// Requests to the console, with the token of the printed address.
const token = new URLSearchParams(location.hash.slice(1)).get('token') || '';
const TOKEN_HEADER = 'Quorate-Console-Token';

async function answered(answer) {
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

export async function get(path) {
  return answered(await fetch(path, {headers: {[TOKEN_HEADER]: token}}));
}

export async function post(path, values) {
  const headers = {[TOKEN_HEADER]: token, 'Content-Type': 'application/json'};
  return answered(await fetch(path, {method: 'POST', headers, body: JSON.stringify(values)}));
}
