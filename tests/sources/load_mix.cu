// Loads that hit L1 with arithmetic between them, timed on an H200: tests/records/h200_load_mix.json.
// WIDE: how the addresses of 16 rows are made: 0 by offsets from one, 1 each from the one before, 2 as 1, and the first of the next
// 16 from the last, too. IMM loads of each row; F multiply-adds and I exclusive ors behind each load. lanes: floats from lane to lane
// (0: all lanes load the same); ldb: floats from row to row; step: 0, which the compiler does not know.
template<int WIDE,int IMM,int F,int I> __global__ void __launch_bounds__(1024) load_mix(const float* base,int lanes,int ldb,int step,int n,float fa,float fb,float* out,unsigned* cycles){
  const float* p=base+(threadIdx.x%32)*lanes; float x=0; float f[4]={0,1,2,3}; int iv[4]={0,1,2,3};
  __syncthreads(); unsigned t=clock();
  if(WIDE==2) for(int k=0;k<n*16;k+=16){
#pragma unroll
    for(int g=0;g<16;g++){
#pragma unroll
      for(int j=0;j<IMM;j++){
        x+=p[(long long)g*ldb+j*32];
#pragma unroll
        for(int z=0;z<F;z++) asm volatile("fma.rn.f32 %0,%1,%2,%0;":"+f"(f[z%4]):"f"(fa),"f"(fb));
#pragma unroll
        for(int z=0;z<I;z++) asm volatile("xor.b32 %0,%0,%1;":"+r"(iv[z%4]):"r"(step+z));
      }
    }
    p+=(long long)16*ldb;
  } else
  for(int k=0;k<n;k++){
    const float* q=p;
#pragma unroll
    for(int g=0;g<16;g++){
      const float* r=WIDE?q+(long long)g*ldb:q+g*32*IMM;
#pragma unroll
      for(int j=0;j<IMM;j++){
        x+=r[j*32];
#pragma unroll
        for(int z=0;z<F;z++) asm volatile("fma.rn.f32 %0,%1,%2,%0;":"+f"(f[z%4]):"f"(fa),"f"(fb));
#pragma unroll
        for(int z=0;z<I;z++) asm volatile("xor.b32 %0,%0,%1;":"+r"(iv[z%4]):"r"(step+z));
      }
    }
    p+=step;
  }
  __syncthreads(); t=clock()-t; if(threadIdx.x==0) cycles[blockIdx.x]=t;
  out[blockIdx.x*1024+threadIdx.x]=x+f[0]+f[1]+f[2]+f[3]+iv[0]+iv[1]+iv[2]+iv[3];
}
